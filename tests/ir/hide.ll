; Strings, string streams and what reads and writes strings, which the C++ library holds too, are seen by no other library (Hide.h); all else is as it
; came: other classes with such arguments, other allocators, type information, explicit instantiations.

; CHECK-DAG: @_ZTVNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEE = linkonce_odr hidden constant
; CHECK-DAG: @_ZTCNSt7__cxx1119basic_ostringstreamIwSt11char_traitsIwESaIwEEE0_St13basic_ostreamIwS2_E = linkonce_odr hidden constant
; CHECK-DAG: @_ZTVSt15basic_streambufIcSt11char_traitsIcEE = linkonce_odr hidden constant
; CHECK-DAG: @_ZTINSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEE = linkonce_odr constant
@_ZTVNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEE = linkonce_odr constant ptr null
@_ZTCNSt7__cxx1119basic_ostringstreamIwSt11char_traitsIwESaIwEEE0_St13basic_ostreamIwS2_E = linkonce_odr constant ptr null
@_ZTVSt15basic_streambufIcSt11char_traitsIcEE = linkonce_odr constant ptr null
@_ZTINSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEE = linkonce_odr constant ptr null

; CHECK-DAG: define linkonce_odr hidden void @_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm(
define linkonce_odr void @_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm(ptr %p) {
  ret void
}
; CHECK-DAG: define linkonce_odr hidden void @_ZNKSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEE4findEPKwmm(
define linkonce_odr void @_ZNKSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEE4findEPKwmm(ptr %p) {
  ret void
}
; CHECK-DAG: define linkonce_odr hidden void @_ZThn16_NSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEED1Ev(
define linkonce_odr void @_ZThn16_NSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEED1Ev(ptr %p) {
  ret void
}
; CHECK-DAG: define weak_odr void @_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm(
define weak_odr void @_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm(ptr %p) {
  ret void
}
; CHECK-DAG: define linkonce_odr void @_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcEN3own5allocIcEEE5clearEv(
define linkonce_odr void @_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcEN3own5allocIcEEE5clearEv(ptr %p) {
  ret void
}
; CHECK-DAG: define linkonce_odr void @_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EE5clearEv(
define linkonce_odr void @_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EE5clearEv(ptr %p) {
  ret void
}
; CHECK-DAG: define linkonce_odr hidden ptr @_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EES4_(
define linkonce_odr ptr @_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EES4_(ptr %p) {
  ret ptr null
}
; CHECK-DAG: define linkonce_odr hidden ptr @_ZStrsIwSt11char_traitsIwESaIwEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EE(
define linkonce_odr ptr @_ZStrsIwSt11char_traitsIwESaIwEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EE(ptr %p) {
  ret ptr null
}
; CHECK-DAG: define linkonce_odr hidden ptr @_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l(
define linkonce_odr ptr @_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l(ptr %p) {
  ret ptr null
}
; CHECK-DAG: define linkonce_odr ptr @_ZStlsIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_St8_SetfillIS3_E(
define linkonce_odr ptr @_ZStlsIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_St8_SetfillIS3_E(ptr %p) {
  ret ptr null
}
; CHECK-DAG: define linkonce_odr hidden void @_ZNKRSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEE3strEv(
define linkonce_odr void @_ZNKRSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEE3strEv(ptr %p) {
  ret void
}
; CHECK-DAG: define linkonce_odr hidden void @_ZNOSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEE3strEv(
define linkonce_odr void @_ZNOSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEE3strEv(ptr %p) {
  ret void
}
