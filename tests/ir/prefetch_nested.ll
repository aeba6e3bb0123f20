; A loop that lies in another which is entered in its middle, as in a second body: its traits say that it is nested (1) and walks (4).
; CHECK: @rows.spill.ahead.loop = private constant [2 x i64] [i64 8, i64 5]
define i64 @rows(ptr %a, ptr %b, ptr %ends, i64 %n, i1 %way, i64 %at) {
entry:
  br i1 %way, label %enter, label %outer
outer:
  %r = phi i64 [ 0, %entry ], [ %r.next, %done ]
  %pe = getelementptr inbounds i64, ptr %ends, i64 %r
  %end = load i64, ptr %pe, align 8
  br label %enter
enter:
  %r.in = phi i64 [ %r, %outer ], [ 0, %entry ]
  %end.in = phi i64 [ %end, %outer ], [ %at, %entry ]
  br label %loop
loop:
  %i = phi i64 [ 0, %enter ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %enter ], [ %s.next, %loop ]
  %p = getelementptr inbounds i64, ptr %b, i64 %i
  %k = load i64, ptr %p, align 8
  %q = getelementptr inbounds i64, ptr %a, i64 %k
  %v = load i64, ptr %q, align 8
  %s.next = add i64 %s, %v
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %i.next, %end.in
  br i1 %more, label %loop, label %done
done:
  %r.next = add nuw nsw i64 %r.in, 1
  %again = icmp ult i64 %r.next, %n
  br i1 %again, label %outer, label %exit
exit:
  ret i64 %s.next
}

; One that is left for good is not.
; CHECK: @once.spill.ahead.loop = private constant [2 x i64] [i64 8, i64 4]
define i64 @once(ptr %a, ptr %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %p = getelementptr inbounds i64, ptr %b, i64 %i
  %k = load i64, ptr %p, align 8
  %q = getelementptr inbounds i64, ptr %a, i64 %k
  %v = load i64, ptr %q, align 8
  %s.next = add i64 %s, %v
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret i64 %s.next
}
