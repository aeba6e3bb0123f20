// Stands before libstdc++'s header of this name where spillcc compiles C++. What is written to a stream goes to a buffer
// that the library holds compiled, which would read a string in spilled memory by the fault path: so it gets copies
// of its parts, on the stack. All that inserts strings comes here (bits/ostream_insert.h, which instantiated.tcc.in
// has each object instantiate).
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
      const streamsize __most = 512;
      _CharT __part[__most];
      while (__count > 0)
	{
	  const streamsize __length = __count < __most ? __count : __most;
	  char_traits<_CharT>::copy(__part, __string, __length);
	  if (__out.rdbuf()->sputn(__part, __length) != __length)
	    {
	      __out.setstate(ios_base::badbit);
	      return;
	    }
	  __string += __length;
	  __count -= __length;
	}
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
