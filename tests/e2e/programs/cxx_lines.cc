// Words and lines read into strings, and strings written to streams: each object has its own copy of what does that
// (tools/spillcc), natively it is the C++ library's. What is read is spilled; what is
// written does not take the fault path. States, widths, exceptions and buffers of all kinds as natively.
// flags: -std=c++17
// levels: O0 O2 lto thin-O0
// chaos: 1
// expect: cache.evictions>=2000 spill.faults<=1200
#include <fstream>
#include <iomanip>
#include <iostream>
#include <istream>
#include <locale>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "e2e.h"

template <class C>
static uint64_t sum_of(const std::basic_string<C>& text) {
  uint64_t sum = text.size();
  for (C c : text) sum = sum * 31 + (uint64_t)c;
  return sum;
}

// Gives out a text by `step` characters at a time, none of them buffered for step 0, and throws at position `failure`. Takes
// `room` characters.
template <class C>
struct Slow : std::basic_streambuf<C> {
  using Traits = std::char_traits<C>;
  Slow(std::basic_string<C> text, size_t step, size_t failure, size_t room)
      : text(std::move(text)), step(step), failure(failure), room(room) {}

  typename Traits::int_type underflow() override {
    if (at >= failure) throw std::runtime_error("the device fails");
    if (at == text.size()) return Traits::eof();
    if (step == 0) return Traits::to_int_type(text[at]);
    C* begin = &text[at];
    const size_t count = std::min(step, text.size() - at);
    at += count;
    this->setg(begin, begin, begin + count);
    return Traits::to_int_type(*begin);
  }
  typename Traits::int_type uflow() override {
    if (step != 0) return std::basic_streambuf<C>::uflow();
    const auto result = underflow();
    if (!Traits::eq_int_type(result, Traits::eof())) ++at;
    return result;
  }
  typename Traits::int_type overflow(typename Traits::int_type c) override {
    if (room == 0) return Traits::eof();
    if (written.size() >= failure) throw std::runtime_error("the device fails");
    --room;
    written.push_back(Traits::to_char_type(c));
    return c;
  }

  std::basic_string<C> text, written;
  size_t step, failure, room, at = 0;
};

template <class C>
static void read_all(std::basic_istream<C>& in, bool words, C delimiter, int width) {
  std::basic_string<C> read(70, C('p'));
  for (int i = 0; i < 40; ++i) {
    try {
      if (words) {
        in.width(width);
        in >> read;
      } else {
        std::getline(in, read, delimiter);
      }
    } catch (const std::exception&) {
      std::cout << " thrown";
    }
    std::cout << ' ' << in.rdstate() << ':' << read.size() << ':' << sum_of(read) % 100000 << ':'
              << in.width() << ':' << in.gcount();
    if (!in.good()) break;
  }
  in.clear();
  try {
    std::cout << " then " << (long)in.rdbuf()->sgetc() << '\n';
  } catch (const std::exception&) {
    std::cout << " and nothing then\n";
  }
}

template <class C>
static std::basic_string<C> widened(const char* text) {
  return {text, text + strlen(text)};
}

template <class C>
static void reading() {
  std::vector<std::basic_string<C>> texts;
  for (const char* text :
       {"", "\n", "one", "one two  three\n", "\n\na;b;;c\n ;d", "  \t lead and trail  \n\n", ";;;", "x"})
    texts.push_back(widened<C>(text));
  texts.push_back(std::basic_string<C>(3000, C('l')) + widened<C>(" ;\n") +
                  std::basic_string<C>(700, C('k')));
  texts.push_back(widened<C>("with") + std::basic_string<C>(3, C(0)) + widened<C>("zeros \x7f\n;"));
  for (const auto& text : texts) {
    for (size_t step : {size_t{0}, size_t{1}, size_t{2}, size_t{7}, size_t{4000}}) {
      for (size_t failure : {size_t{1} << 20, size_t{5}}) {
        for (auto mask : {std::ios::goodbit, std::ios::badbit, std::ios::failbit | std::ios::eofbit}) {
          for (int what = 0; what < 5; ++what) {
            Slow<C> buffer(text, step, failure, 0);
            std::basic_istream<C> in(&buffer);
            in.exceptions(mask);
            if (what == 4) in.unsetf(std::ios::skipws);
            read_all<C>(in, what >= 2, what == 0 ? C('\n') : C(';'), what == 3 ? 2 : 0);
          }
        }
      }
    }
    std::basic_istringstream<C> in(text);
    read_all<C>(in, false, C('\n'), 0);
  }
  std::basic_istream<C> without(nullptr);
  std::basic_string<C> kept(5, C('k'));
  std::cout << bool(std::getline(without, kept)) << bool(without >> kept) << without.rdstate() << kept.size()
            << '\n';
}

// Commas and letters e are white space.
struct Classes : std::ctype<char> {
  static const mask* table() {
    static mask table[table_size];
    std::copy(classic_table(), classic_table() + table_size, table);
    table[','] = table['e'] = space;
    table[' '] = print;
    return table;
  }
  Classes() : std::ctype<char>(table()) {}
};

template <class C>
static void writing() {
  for (size_t size : {0, 1, 9, 2047, 2048, 2049, 3000}) {
    const std::basic_string<C> text(size, C('t'));
    for (size_t room : {size_t{1} << 20, size_t{2500}, size_t{3}, size_t{0}}) {
      for (size_t failure : {size_t{1} << 20, size_t{2050}}) {
        for (auto mask : {std::ios::goodbit, std::ios::badbit}) {
          for (auto adjust : {std::ios::left, std::ios::right, std::ios::internal}) {
            Slow<C> buffer({}, 0, failure, room);
            std::basic_ostream<C> out(&buffer);
            out.exceptions(mask);
            out.setf(adjust, std::ios::adjustfield);
            try {
              out << std::setfill(C('-')) << std::setw(20) << text << text.c_str();
              out << std::setw(12) << std::basic_string_view<C>(text).substr(size / 2) << C('.');
            } catch (const std::exception&) {
              std::cout << " thrown";
            }
            std::cout << ' ' << out.rdstate() << ':' << sum_of(buffer.written) % 100000 << ':' << out.width();
          }
        }
      }
    }
  }
  std::cout << '\n';
}

// Each insertion is one call of the buffer's.
struct Calls : std::streambuf {
  std::streamsize xsputn(const char* from, std::streamsize n) override {
    calls += std::to_string(n) + ':' + std::to_string(sum_of(std::string(from, (size_t)n)) % 1000) + ' ';
    return n;
  }
  std::string calls;
};
static void records() {
  Calls buffer;
  std::ostream out(&buffer);
  for (size_t size : {1, 511, 512, 2047, 2048, 2049, 100000}) out << std::string(size, 'r');
  std::cout << buffer.calls << '\n';
}

// Much more than the budget, of which each line is the reader's own string, moved away.
static void files() {
  {
    std::ofstream out("lines.out");
    std::vector<std::string> lines;
    for (int i = 0; i < 20000; ++i) lines.emplace_back(60 + i * 37 % 500, (char)('a' + i % 26));
    for (const std::string& line : lines) out << line << '\n';
  }
  for (bool words : {false, true}) {
    std::ifstream in("lines.out");
    std::vector<std::string> lines;
    std::string line;
    while (words ? bool(in >> line) : bool(std::getline(in, line))) {
      CHECK_SPILLED(line.data());
      lines.push_back(std::move(line));
      line = std::string();
    }
    uint64_t sum = 0;
    for (const std::string& l : lines) sum = sum * 31 + sum_of(l);
    std::cout << lines.size() << ' ' << sum << '\n';
  }
  std::remove("lines.out");
}

int main() {
  reading<char>();
  reading<wchar_t>();
  {
    std::istringstream in("one, two,three four");
    in.imbue(std::locale(in.getloc(), new Classes));
    std::string word;
    while (in >> word) std::cout << '<' << word << '>';
    std::cout << in.rdstate() << '\n';
  }
  writing<char>();
  writing<wchar_t>();
  records();
  files();
  return 0;
}
