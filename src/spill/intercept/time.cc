// Clocks, calendars, sleeping and timers: small structures, copied when they are spilled.
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "spill/intercept/call.h"

SPILL_CALL(time_t, time, (time_t* to), (PlainObject<time_t>(to)))
SPILL_CALL(clock_t, times, (tms * to), (PlainObject<tms>(to)))
SPILL_EXPORT int __spill_gettimeofday(timeval* to, void* zone) {
  return gettimeofday(PlainObject<timeval>(to),
                      PlainObject<struct timezone>(static_cast<struct timezone*>(zone)));
}
SPILL_CALL(int, clock_gettime, (clockid_t clock, timespec* to), (clock, PlainObject<timespec>(to)))
SPILL_CALL(int, clock_getres, (clockid_t clock, timespec* to), (clock, PlainObject<timespec>(to)))
SPILL_CALL(int, timespec_get, (timespec * to, int base), (PlainObject<timespec>(to), base))

SPILL_CALL(tm*, localtime, (const time_t* time), (PlainIn<time_t>(time)))
SPILL_CALL(tm*, gmtime, (const time_t* time), (PlainIn<time_t>(time)))
SPILL_CALL(char*, ctime, (const time_t* time), (PlainIn<time_t>(time)))
SPILL_CALL(char*, asctime, (const tm* time), (PlainIn<tm>(time)))
SPILL_CALL(time_t, mktime, (tm * time), (PlainObject<tm>(time)))
SPILL_CALL(time_t, timegm, (tm * time), (PlainObject<tm>(time)))
SPILL_CALL(time_t, timelocal, (tm * time), (PlainObject<tm>(time)))

SPILL_EXPORT tm* __spill_localtime_r(const time_t* time, tm* to) {
  return localtime_r(PlainIn<time_t>(time), PlainObject<tm>(to)) != nullptr ? to : nullptr;
}
SPILL_EXPORT tm* __spill_gmtime_r(const time_t* time, tm* to) {
  return gmtime_r(PlainIn<time_t>(time), PlainObject<tm>(to)) != nullptr ? to : nullptr;
}
// print(text) fills at most 26 bytes; the caller promises that there is room for them at `to`.
static char* print_time(char* to, auto print) {
  if (plain(to)) return print(to);
  char text[26];
  if (print(text) == nullptr) return nullptr;
  spill::copy(to, text, strlen(text) + 1);
  return to;
}
SPILL_EXPORT char* __spill_ctime_r(const time_t* time, char* to) {
  PlainIn<time_t> plain_time(time);
  return print_time(to, [&](char* text) { return ctime_r(plain_time, text); });
}
SPILL_EXPORT char* __spill_asctime_r(const tm* time, char* to) {
  PlainIn<tm> plain_time(time);
  return print_time(to, [&](char* text) { return asctime_r(plain_time, text); });
}

SPILL_EXPORT size_t __spill_strftime(char* to, size_t n, const char* format, const tm* time) {
  PlainString plain_format(format);
  PlainIn<tm> plain_time(time);
  if (plain(to)) return strftime(to, n, plain_format, plain_time);
  // n may exceed the real room: only as much as the text needs is used.
  for (size_t room = std::min<size_t>(n, 256);; room = std::min(n, 16 * room)) {
    PlainBytes text(to, room, PlainBytes::kOut);
    if (text.data() == nullptr) return 0;
    // The result is 0 if the text does not fit, and also for an empty text, which has to be stored: the first byte tells these apart.
    *text.data() = 1;
    const size_t length = strftime(text.data(), room, plain_format, plain_time);
    const bool fits = length > 0 || *text.data() == 0;
    if (fits) text.store(length + 1);
    if (fits || room == n) return length;
  }
}

namespace {

// Longer than the name of any month or era in any locale. strptime looks no further than this beyond what it takes, and no
// character of a format stands for more text, except white space.
constexpr size_t kNameBytes = 256;

// Whether strptime's result for the first `length` bytes of a text holds for the whole text.
bool is_decided(const char* head, size_t length, const char* end, size_t format_bytes) {
  if (end != nullptr) {
    const auto taken = static_cast<size_t>(end - head);
    // No name contains a line end.
    if (taken + kNameBytes < length || memchr(end, '\n', length - taken) != nullptr) return true;
  }
  size_t solid = 0;
  for (size_t i = 0; i < length; ++i) solid += isspace(static_cast<unsigned char>(head[i])) == 0;
  return solid > (format_bytes + 1) * kNameBytes;
}

}  // namespace

// The text may be long: a copy of its start is parsed, and made longer until the result is certain, as with numbers (number.cc).
SPILL_EXPORT char* __spill_strptime(const char* text, const char* format, tm* to) {
  PlainString plain_format(format);
  if (plain(text)) return strptime(text, plain_format, PlainObject<tm>(to));
  const size_t format_bytes = strlen(plain_format);
  for (size_t capacity = spill::first_window(text, 2 * kNameBytes);;
       capacity = spill::next_window(text, capacity)) {
    const size_t length = spill::string_length(text, capacity);
    spill::Scratch head(length + 1);
    if (head.data() == nullptr) return nullptr;
    spill::copy(head.data(), text, length);
    head.data()[length] = 0;
    tm result = spill::load(to);
    const char* end = strptime(head.data(), plain_format, &result);
    if (length == capacity && !is_decided(head.data(), length, end, format_bytes)) continue;
    spill::store(to, result);
    return end == nullptr ? nullptr : const_cast<char*>(text) + (end - head.data());
  }
}

SPILL_WAIT(unsigned, sleep, (unsigned seconds), (seconds))
SPILL_WAIT(int, usleep, (useconds_t microseconds), (microseconds))
SPILL_EXPORT int __spill_nanosleep(const timespec* time, timespec* rest) {
  PlainIn<timespec> plain_time(time);
  PlainObject<timespec> plain_rest(rest);
  spill::clear_slots();
  return nanosleep(plain_time, plain_rest);
}
SPILL_EXPORT int __spill_clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  PlainIn<timespec> plain_time(time);
  PlainObject<timespec> plain_rest(rest);
  spill::clear_slots();
  return clock_nanosleep(clock, flags, plain_time, plain_rest);
}

SPILL_CALL(int, getitimer, (__itimer_which_t which, itimerval* to), (which, PlainObject<itimerval>(to)))
SPILL_CALL(int, setitimer, (__itimer_which_t which, const itimerval* time, itimerval* old),
           (which, PlainIn<itimerval>(time), PlainObject<itimerval>(old)))
SPILL_CALL(int, timer_settime, (timer_t timer, int flags, const itimerspec* time, itimerspec* old),
           (timer, flags, PlainIn<itimerspec>(time), PlainObject<itimerspec>(old)))
SPILL_CALL(int, timer_gettime, (timer_t timer, itimerspec* to), (timer, PlainObject<itimerspec>(to)))
SPILL_CALL(int, timerfd_settime, (int descriptor, int flags, const itimerspec* time, itimerspec* old),
           (descriptor, flags, PlainIn<itimerspec>(time), PlainObject<itimerspec>(old)))
SPILL_CALL(int, timerfd_gettime, (int descriptor, itimerspec* to), (descriptor, PlainObject<itimerspec>(to)))
