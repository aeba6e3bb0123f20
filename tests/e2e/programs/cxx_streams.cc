// Streams of the standard library, whose compiled code reads and writes spilled strings and buffers.
// input: cxx_streams.txt
// expect: cache.evictions>=300 spill.faults>=1
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <vector>
#include "e2e.h"

int main() {
  std::string title;
  std::getline(std::cin, title);
  std::vector<std::string> words;
  std::string* word = new std::string;
  for (int i = 0; i < 5 && std::cin >> *word; ++i) words.push_back(*word);
  int* number = new int;
  double* real = new double;
  std::cin >> *number >> *real;
  std::cout << title << '|' << words.size() << '|' << words.back() << '|' << *number << '|'
            << std::setprecision(3) << *real << std::endl;
  std::cin.ignore();
  char* buffer = new char[4096];
  std::cin.getline(buffer, 4096);
  std::cout << buffer << "\n";
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(std::cin, line)) lines.push_back(line);
  std::cout << lines.size() << " lines\n";

  push_out(3 << 20);
  {
    std::ofstream out("streams.out");
    for (int i = 0; i < 20000; ++i)
      out << "record " << std::setw(8) << i << ' ' << words[i % words.size()] << '\n';
    std::string block(200000, 'b');
    out.write(block.data(), static_cast<std::streamsize>(block.size()));
    CHECK(out.good());
  }
  std::ifstream in("streams.out");
  std::string first, name;
  int index;
  long sum = 0;
  for (int i = 0; i < 20000; ++i) {
    in >> first >> index >> name;
    CHECK(index == i && name == words[i % words.size()]);
    sum += index;
  }
  in.ignore();
  std::vector<char> block(200000);
  in.read(block.data(), 200000);
  CHECK(in.gcount() == 200000);
  for (char c : block) CHECK(c == 'b');
  std::remove("streams.out");
  std::cout << sum << std::endl;
  std::cerr << "to standard error: " << words[0] << std::endl;
  std::clog << std::string(300, '-') << std::endl;
  return 0;
}
