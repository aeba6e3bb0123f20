// With spillcc, C++ code includes this header instead of libstdc++'s header of the same name, which it includes in turn.
// Reading a word or a line makes a string grow. The library contains these functions compiled for char and wchar_t
// (basic_string.h declares them), so that the string would be plain memory (instantiated.tcc.in). Here each object
// compiles its own. They do what the standard says ([istream.formatted.reqmts], [istream.unformatted], [string.io]),
// and take many characters at a time from the stream's buffer.
#pragma GCC system_header
#include_next <bits/istream.tcc>
#if _GLIBCXX_USE_CXX11_ABI && !defined _SPILLWAY_ISTREAM_TCC
#define _SPILLWAY_ISTREAM_TCC 1
#include <bits/cxxabi_forced.h>

namespace std _GLIBCXX_VISIBILITY(default)
{
_GLIBCXX_BEGIN_NAMESPACE_VERSION

  // The characters that a stream buffer has ready to be read. Only classes derived from it have access to them.
  template<typename _CharT>
    struct __spillway_area : basic_streambuf<_CharT>
    {
      static const _CharT*
      _S_begin(const basic_streambuf<_CharT>* __buffer)
      { return (__buffer->*(&__spillway_area::gptr))(); }

      // How many there are; at most `__most`, and at most what gbump's argument can hold.
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

  // What __spillway_read reads: a line. It ends at a delimiter, which is extracted but not stored.
  template<typename _CharT>
    struct __spillway_line
    {
      typedef typename char_traits<_CharT>::int_type __int_type;
      _CharT _M_delimiter;
      size_t _M_most;  // characters

      explicit
      __spillway_line(_CharT __delimiter) : _M_delimiter(__delimiter), _M_most(0) { }

      void
      _M_begin(basic_istream<_CharT>&, const basic_string<_CharT>& __string)
      { _M_most = __string.max_size(); }

      bool
      _M_ends(_CharT __c) const
      { return char_traits<_CharT>::eq(__c, _M_delimiter); }

      const _CharT*
      _M_end(const _CharT* __from, const _CharT* __to) const
      {
	const _CharT* __found = char_traits<_CharT>::find(__from, __to - __from, _M_delimiter);
	return __found ? __found : __to;
      }

      // `__c` is why reading stopped.
      ios_base::iostate
      _M_finish(basic_istream<_CharT>& __in, const basic_string<_CharT>&, __int_type __c, bool& __extracted) const
      {
	typedef char_traits<_CharT> __traits;
	if (__traits::eq_int_type(__c, __traits::eof()))
	  return ios_base::eofbit;
	if (!_M_ends(__traits::to_char_type(__c)))
	  return ios_base::failbit;
	__in.rdbuf()->sbumpc();
	__extracted = true;
	return ios_base::goodbit;
      }
    };

  // What __spillway_read reads: a word. It ends at white space, or when it has as many characters as the stream's width.
  struct __spillway_word
  {
    const ctype<char>* _M_classes;
    size_t _M_most;

    __spillway_word() : _M_classes(0), _M_most(0) { }

    void
    _M_begin(basic_istream<char>& __in, const basic_string<char>& __string)
    {
      _M_most = __in.width() > 0 ? static_cast<size_t>(__in.width()) : __string.max_size();
      _M_classes = &use_facet<ctype<char> >(__in.getloc());
    }

    bool
    _M_ends(char __c) const
    { return _M_classes->is(ctype_base::space, __c); }

    const char*
    _M_end(const char* __from, const char* __to) const
    { return _M_classes->scan_is(ctype_base::space, __from, __to); }

    ios_base::iostate
    _M_finish(basic_istream<char>& __in, const basic_string<char>& __string, char_traits<char>::int_type __c, bool&) const
    {
      __in.width(0);
      return __string.size() < _M_most && char_traits<char>::eq_int_type(__c, char_traits<char>::eof())
	? ios_base::eofbit : ios_base::goodbit;
    }
  };

  // Appends characters to the string until the line or word ends. Returns the next character: one that ends it, end of
  // file, or any other if the string has reached its greatest length.
  template<typename _CharT, typename _Run>
    typename char_traits<_CharT>::int_type
    __spillway_append(basic_streambuf<_CharT>* __buffer, basic_string<_CharT>& __string, const _Run& __run)
    {
      typedef char_traits<_CharT>      __traits;
      typedef __spillway_area<_CharT>  __area;
      typename __traits::int_type __c = __buffer->sgetc();
      while (__string.size() < __run._M_most && !__traits::eq_int_type(__c, __traits::eof())
	     && !__run._M_ends(__traits::to_char_type(__c)))
	{
	  const size_t __count = __area::_S_count(__buffer, __run._M_most - __string.size());
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

  template<typename _CharT, typename _Run>
    basic_istream<_CharT>&
    __spillway_read(basic_istream<_CharT>& __in, basic_string<_CharT>& __string, _Run __run, bool __keeps_space)
    {
      ios_base::iostate __state = ios_base::goodbit;
      bool __extracted = false;
      typename basic_istream<_CharT>::sentry __sentry(__in, __keeps_space);
      if (__sentry)
	{
	  __try
	    {
	      __string.erase();
	      __run._M_begin(__in, __string);
	      const typename char_traits<_CharT>::int_type __c = std::__spillway_append(__in.rdbuf(), __string, __run);
	      __state = __run._M_finish(__in, __string, __c, __extracted);
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
    { return std::__spillway_read(__in, __string, __spillway_line<char>(__delimiter), true); }

#ifdef _GLIBCXX_USE_WCHAR_T
  template<>
    inline basic_istream<wchar_t>&
    getline(basic_istream<wchar_t>& __in, basic_string<wchar_t>& __string, wchar_t __delimiter)
    { return std::__spillway_read(__in, __string, __spillway_line<wchar_t>(__delimiter), true); }
#endif

  template<>
    inline basic_istream<char>&
    operator>>(basic_istream<char>& __in, basic_string<char>& __string)
    { return std::__spillway_read(__in, __string, __spillway_word(), false); }

_GLIBCXX_END_NAMESPACE_VERSION
} // namespace std
#endif
