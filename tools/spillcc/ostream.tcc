// With spillcc, C++ code includes this header instead of libstdc++'s header of the same name, which it includes in turn.
// Streams write to stream buffers, whose code is compiled in the library: it would read a string in spilled memory by the
// fault path. So it gets a copy on the stack. A long string is not copied, and each of its pages may fault: it must be
// passed in one call, which may be one message, or one system call. All functions that insert strings call this one
// (bits/ostream_insert.h, which each object compiles, see instantiated.tcc.in).
#pragma GCC system_header
#include_next <bits/ostream.tcc>
#if _GLIBCXX_USE_CXX11_ABI && !defined _SPILLWAY_OSTREAM_TCC
#define _SPILLWAY_OSTREAM_TCC 1

namespace std _GLIBCXX_VISIBILITY(default)
{
_GLIBCXX_BEGIN_NAMESPACE_VERSION

  template<typename _CharT>
    void
    __spillway_write(basic_ostream<_CharT>& __out, const _CharT* __string, streamsize __count)
    {
      const streamsize __most = 2048 / sizeof(_CharT);
      _CharT __copy[__most];
      if (__count <= __most)
	__string = char_traits<_CharT>::copy(__copy, __string, __count);
      if (__out.rdbuf()->sputn(__string, __count) != __count)
	__out.setstate(ios_base::badbit);
    }

  template<>
    inline void
    __ostream_write(basic_ostream<char>& __out, const char* __string, streamsize __count)
    { std::__spillway_write(__out, __string, __count); }

#ifdef _GLIBCXX_USE_WCHAR_T
  template<>
    inline void
    __ostream_write(basic_ostream<wchar_t>& __out, const wchar_t* __string, streamsize __count)
    { std::__spillway_write(__out, __string, __count); }
#endif

_GLIBCXX_END_NAMESPACE_VERSION
} // namespace std
#endif
