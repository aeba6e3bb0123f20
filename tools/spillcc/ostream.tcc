// Stands before libstdc++'s header of this name where spillcc compiles C++. What is written to a stream goes to a buffer
// that the library holds compiled, which would read a string in spilled memory by the fault path: so it gets a copy, on the
// stack. A long one is read by the fault path, a fault a page: it stays one call of the buffer's, which may be one message,
// or one system call. All that inserts strings comes here (bits/ostream_insert.h, which instantiated.tcc.in has each
// object instantiate).
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
