// Stands before libstdc++'s header of this name where spillcc compiles C++, for the reason that instantiated.tcc.in
// gives: reading a word or a line makes a string grow, and the library holds that compiled for char and wchar_t
// (basic_string.h declares it). Each object has its own here, which do what the standard says of them ([istream.formatted.reqmts],
// [istream.unformatted], [string.io]) and take whole runs from the buffer.
#pragma GCC system_header
#include_next <bits/istream.tcc>
#if _GLIBCXX_USE_CXX11_ABI && !defined _SPILLWAY_ISTREAM_TCC
#define _SPILLWAY_ISTREAM_TCC 1
#include <bits/cxxabi_forced.h>

namespace std _GLIBCXX_VISIBILITY(default)
{
_GLIBCXX_BEGIN_NAMESPACE_VERSION

  // A buffer's characters that are there to be read, which only classes derived from it see.
  template<typename _CharT>
    struct __spillway_area : basic_streambuf<_CharT>
    {
      static const _CharT*
      _S_begin(const basic_streambuf<_CharT>* __buffer)
      { return (__buffer->*(&__spillway_area::gptr))(); }

      // How many, up to so many, and as many as gbump takes.
      static size_t
      _S_count(const basic_streambuf<_CharT>* __buffer, size_t __most)
      {
	const ptrdiff_t __there = (__buffer->*(&__spillway_area::egptr))() - _S_begin(__buffer);
	const size_t __count = __there < 0x7fffffff ? __there : 0x7fffffff;
	return __count < __most ? __count : __most;
      }

      static void
      _S_skip(basic_streambuf<_CharT>* __buffer, size_t __count)
      { (__buffer->*(&__spillway_area::gbump))(static_cast<int>(__count)); }
    };

  // Where a run of characters ends: at a delimiter,
  template<typename _CharT>
    struct __spillway_line
    {
      _CharT _M_delimiter;

      bool
      _M_ends(_CharT __c) const
      { return char_traits<_CharT>::eq(__c, _M_delimiter); }

      const _CharT*
      _M_end(const _CharT* __from, const _CharT* __to) const
      {
	const _CharT* __found = char_traits<_CharT>::find(__from, __to - __from, _M_delimiter);
	return __found ? __found : __to;
      }
    };

  // or at white space.
  struct __spillway_word
  {
    const ctype<char>& _M_classes;

    bool
    _M_ends(char __c) const
    { return _M_classes.is(ctype_base::space, __c); }

    const char*
    _M_end(const char* __from, const char* __to) const
    { return _M_classes.scan_is(ctype_base::space, __from, __to); }
  };

  // Appends what comes before the run's end, at most so many, to the string and returns why it stopped: the character of the end, the
  // end of the file, or any other after so many.
  template<typename _CharT, typename _Run>
    typename char_traits<_CharT>::int_type
    __spillway_append(basic_streambuf<_CharT>* __buffer, basic_string<_CharT>& __string, const _Run& __run, size_t __most)
    {
      typedef char_traits<_CharT>      __traits;
      typedef __spillway_area<_CharT>  __area;
      typename __traits::int_type __c = __buffer->sgetc();
      while (__string.size() < __most && !__traits::eq_int_type(__c, __traits::eof())
	     && !__run._M_ends(__traits::to_char_type(__c)))
	{
	  const size_t __count = __area::_S_count(__buffer, __most - __string.size());
	  if (__count > 1)
	    {
	      const _CharT* __begin = __area::_S_begin(__buffer);
	      const size_t __taken = __run._M_end(__begin, __begin + __count) - __begin;
	      __string.append(__begin, __taken);
	      __area::_S_skip(__buffer, __taken);
	      __c = __buffer->sgetc();
	    }
	  else
	    {
	      __string.push_back(__traits::to_char_type(__c));
	      __c = __buffer->snextc();
	    }
	}
      return __c;
    }

  template<typename _CharT>
    basic_istream<_CharT>&
    __spillway_getline(basic_istream<_CharT>& __in, basic_string<_CharT>& __string, _CharT __delimiter)
    {
      typedef char_traits<_CharT>  __traits;
      ios_base::iostate __state = ios_base::goodbit;
      bool __extracted = false;
      typename basic_istream<_CharT>::sentry __sentry(__in, true);
      if (__sentry)
	{
	  __try
	    {
	      __string.erase();
	      const __spillway_line<_CharT> __line = { __delimiter };
	      const typename __traits::int_type __c =
		std::__spillway_append(__in.rdbuf(), __string, __line, __string.max_size());
	      if (__traits::eq_int_type(__c, __traits::eof()))
		__state |= ios_base::eofbit;
	      else if (__line._M_ends(__traits::to_char_type(__c)))
		{
		  __in.rdbuf()->sbumpc();
		  __extracted = true;
		}
	      else
		__state |= ios_base::failbit;
	    }
	  __catch(__cxxabiv1::__forced_unwind&)
	    {
	      __in._M_setstate(ios_base::badbit);
	      __throw_exception_again;
	    }
	  __catch(...)
	    { __in._M_setstate(ios_base::badbit); }
	  __extracted |= !__string.empty();
	}
      if (!__extracted)
	__state |= ios_base::failbit;
      if (__state)
	__in.setstate(__state);
      return __in;
    }

  template<>
    inline basic_istream<char>&
    getline(basic_istream<char>& __in, basic_string<char>& __string, char __delimiter)
    { return std::__spillway_getline(__in, __string, __delimiter); }

#ifdef _GLIBCXX_USE_WCHAR_T
  template<>
    inline basic_istream<wchar_t>&
    getline(basic_istream<wchar_t>& __in, basic_string<wchar_t>& __string, wchar_t __delimiter)
    { return std::__spillway_getline(__in, __string, __delimiter); }
#endif

  template<>
    inline basic_istream<char>&
    operator>>(basic_istream<char>& __in, basic_string<char>& __string)
    {
      typedef char_traits<char>  __traits;
      ios_base::iostate __state = ios_base::goodbit;
      bool __extracted = false;
      basic_istream<char>::sentry __sentry(__in, false);
      if (__sentry)
	{
	  __try
	    {
	      __string.erase();
	      const size_t __most = __in.width() > 0 ? static_cast<size_t>(__in.width()) : __string.max_size();
	      const __spillway_word __word = { use_facet<ctype<char> >(__in.getloc()) };
	      const __traits::int_type __c = std::__spillway_append(__in.rdbuf(), __string, __word, __most);
	      if (__string.size() < __most && __traits::eq_int_type(__c, __traits::eof()))
		__state |= ios_base::eofbit;
	      __in.width(0);
	    }
	  __catch(__cxxabiv1::__forced_unwind&)
	    {
	      __in._M_setstate(ios_base::badbit);
	      __throw_exception_again;
	    }
	  __catch(...)
	    { __in._M_setstate(ios_base::badbit); }
	  __extracted |= !__string.empty();
	}
      if (!__extracted)
	__state |= ios_base::failbit;
      if (__state)
	__in.setstate(__state);
      return __in;
    }

_GLIBCXX_END_NAMESPACE_VERSION
} // namespace std
#endif
