// The C++ library on spilled memory: coroutines, exceptions with large objects, virtual bases, thread-local
// destructors, synchronisation, futures, expressions, file systems, streams, containers.
// levels: O2
// flags: -std=c++20 -pthread
// chaos: 2
// pages: 4K 16K
#include <unistd.h>
#include <algorithm>
#include <any>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <latch>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <regex>
#include <semaphore>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>
#include "e2e.h"
struct Gen {
  struct promise_type {
    int v;
    Gen get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int x) {
      v = x;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
  std::coroutine_handle<promise_type> h;
};
static Gen gen(std::vector<int>& v, int n) {
  std::string s(200, 'g');
  for (int i = 0; i < n; ++i) {
    if (i == 50) throw std::runtime_error(s);
    co_yield v[i] + (int)s.size();
  }
}
struct A {
  virtual ~A() {}
  virtual int f() const { return 1; }
  int a = 1;
};
struct B : virtual A {
  int f() const override { return 2 + a; }
  int b = 2;
};
struct C : virtual A {
  int c = 3;
};
struct D : B, C {
  int f() const override { return a + b + c; }
};
static std::atomic<int> dtors;  // threads end at the same time
struct TL {
  std::vector<int>* v = new std::vector<int>(1000, 7);
  ~TL() {
    dtors += std::accumulate(v->begin(), v->end(), 0);
    delete v;
  }
};
thread_local TL tl;
struct E {
  std::string m;
  std::vector<char> pad;
};
static void thrower(int d, std::shared_ptr<std::string> s) {
  std::string local(300, 'l');
  if (d == 0) throw E{*s, std::vector<char>(5000, 'e')};
  thrower(d - 1, s);
}
static void maps(std::mt19937& g) {
  std::unordered_map<std::string, std::vector<int>> m;
  for (int i = 0; i < 20000; ++i) m["key" + std::to_string(i % 3000)].push_back(i);
  size_t t = 0;
  for (auto& [k, x] : m) t += x.size() * k.size();
  std::cout << t << "\n";
  std::map<int, std::string> om;
  for (int i = 0; i < 5000; ++i) om[g() % 10000] = std::string(i % 60, 'x');
  std::cout << om.size() << " " << om.begin()->second << "\n";
}
static void coroutines(std::vector<int>& v) {
  auto G = gen(v, 100);
  int sum = 0;
  try {
    for (;;) {
      G.h.resume();
      if (G.h.done()) break;
      sum += G.h.promise().v;
    }
  } catch (std::runtime_error& e) {
    std::cout << sum << " " << strlen(e.what()) << "\n";
  }
  G.h.destroy();
}
static void exceptions() {
  for (int i = 0; i < 200; ++i) try {
      thrower(i % 20, std::make_shared<std::string>(1000, 'a' + i % 26));
    } catch (E& e) {
      if (i % 50 == 0) std::cout << e.m[0] << e.pad.size() << "\n";
    }
}
static void virtual_bases() {
  std::unique_ptr<A> d(new D);
  std::cout << d->f() << " " << dynamic_cast<C*>(d.get())->c << " " << (dynamic_cast<B*>(d.get()) != nullptr)
            << "\n";
  D* arr = new D[10];
  delete[] arr;
}
static void aligned_memory() {
  void* mem = ::operator new(10000, std::align_val_t(4096));
  auto* pv = new (mem) std::vector<int>(100, 3);
  CHECK(((uintptr_t)mem & 4095) == 0);
  pv->~vector();
  ::operator delete(mem, std::align_val_t(4096));
}
static void no_memory() {
  try {
    volatile size_t huge = (size_t)1 << 62;
    char* p = new char[huge];
    HIDE(p);
    CHECK(0);
  } catch (std::bad_alloc&) {
    std::cout << "bad_alloc\n";
  }
  // There is no such address. A handler is asked to make room first.
  static int asked = 0;
  std::set_new_handler([] {
    if (++asked == 3) std::set_new_handler(nullptr);
  });
  try {
    volatile size_t nowhere = (size_t)1 << 47;
    void* p = ::operator new(16, std::align_val_t(nowhere));
    HIDE(p);
    CHECK(0);
  } catch (std::bad_alloc&) {
    std::cout << "bad_alloc of what is aligned, " << asked << " times\n";
  }
  const auto ask_twice = [] {
    asked = 0;
    std::set_new_handler([] {
      if (++asked == 2) std::set_new_handler(nullptr);
    });
  };
  volatile size_t too_much = (size_t)1 << 62;
  ask_twice();
  void* none = ::operator new(too_much, std::nothrow);
  HIDE(none);
  CHECK(none == nullptr && asked == 2);
  ask_twice();
  none = ::operator new[](too_much, std::align_val_t(256), std::nothrow);
  HIDE(none);
  CHECK(none == nullptr && asked == 2);
}
static void synchronisation() {
  std::vector<std::thread> ts;
  std::mutex* mu = new std::mutex;
  std::condition_variable* cv = new std::condition_variable;
  auto* sem = new std::counting_semaphore<10>(0);
  auto* la = new std::latch(4);
  auto* ba = new std::barrier<>(4);
  auto* sm = new std::shared_mutex;
  auto* of = new std::once_flag;
  std::atomic<int>* at = new std::atomic<int>(0);
  int ready = 0, onces = 0;
  for (int i = 0; i < 4; ++i)
    ts.emplace_back([&, i] {
      tl.v->at(0) = 7;
      std::call_once(*of, [&] { ++onces; });
      la->arrive_and_wait();
      for (int k = 0; k < 20; ++k) {
        ba->arrive_and_wait();
        std::shared_lock l(*sm);
      }
      {
        std::unique_lock l(*mu);
        ++ready;
        cv->notify_all();
        cv->wait(l, [&] { return ready == 4; });
      }
      sem->release();
      at->fetch_add(1);
      at->notify_all();
    });
  for (int i = 0; i < 4; ++i) sem->acquire();
  for (int x; (x = at->load()) != 4;) at->wait(x);
  for (auto& x : ts) x.join();
  std::cout << onces << " " << dtors << "\n";
}
static void futures(std::vector<int>& v) {
  auto fu = std::async(std::launch::async, [&] {
    if (v.size() > 3) throw std::out_of_range("async");
    return 1;
  });
  try {
    fu.get();
  } catch (std::out_of_range& e) {
    std::cout << e.what() << "\n";
  }
  std::promise<std::string> pr;
  auto fp = pr.get_future();
  std::thread pt([&] { pr.set_value(std::string(5000, 'p')); });
  std::cout << fp.get().size() << "\n";
  pt.join();
}
static void expressions() {
  std::regex re("([a-z]+)(\\d+)");
  std::string text;
  for (int i = 0; i < 300; ++i) text += "abc" + std::to_string(i) + " ";
  int n = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), re), e; it != e; ++it) n += std::stoi((*it)[2]);
  std::cout << n << "\n";
}
static void file_systems() {
  namespace fs = std::filesystem;
  CHECK(fs::is_directory(fs::temp_directory_path()));
  const fs::path dir = "corners." + std::to_string(getpid());
  fs::create_directories(dir / "a/b");
  {
    std::ofstream o(dir / "a/f");
    for (int i = 0; i < 5000; ++i) o << i << ' ' << std::string(10, 'z') << '\n';
  }
  {
    std::ifstream i(dir / "a/f");
    std::string line;
    int c = 0;
    while (std::getline(i, line)) c += line.size();
    std::cout << c << "\n";
    i.clear();
    i.seekg(0);
    std::vector<char> buf(30000);
    i.read(buf.data(), buf.size());
    std::cout << i.gcount() << "\n";
  }
  int cnt = 0;
  for (auto& e : fs::recursive_directory_iterator(dir)) cnt += e.path().string().size() > 0;
  std::cout << cnt << " " << fs::file_size(dir / "a/f") << "\n";
  fs::remove_all(dir);
}
static void streams() {
  std::stringstream ss;
  for (int i = 0; i < 10000; ++i) ss << i << ",";
  std::string tok;
  long long sumt = 0;
  while (std::getline(ss, tok, ',')) sumt += std::stoll(tok);
  std::cout << sumt << "\n";
}
static void values(std::vector<int>& v) {
  std::variant<int, std::string> va = std::string(100, 'v');
  std::any an = v;
  std::cout << std::get<1>(va).size() << " " << std::any_cast<std::vector<int>&>(an).size() << "\n";
  std::function<int(int)> fn = [v](int i) { return v[i]; };
  std::cout << fn(5) << "\n";
}
static void containers(std::mt19937& g) {
  std::deque<std::list<int>> dl;
  for (int i = 0; i < 1000; ++i) dl.emplace_back(i % 10, i);
  size_t tot = 0;
  for (auto& l : dl) tot += l.size();
  std::cout << tot << "\n";
  std::priority_queue<std::pair<int, std::string>> pq;
  for (int i = 0; i < 1000; ++i) pq.emplace(g() % 1000, "s");
  std::cout << pq.top().first << "\n";
}
int main() {
  std::vector<int> v(300000);
  std::mt19937 g(1);
  for (auto& x : v) x = g() % 1000000;
  auto w = v;
  std::sort(v.begin(), v.end());
  std::stable_sort(w.begin(), w.end());
  CHECK(v == w);
  std::cout << v[1000] << std::endl;
  maps(g);
  coroutines(v);
  exceptions();
  virtual_bases();
  aligned_memory();
  no_memory();
  synchronisation();
  futures(v);
  expressions();
  file_systems();
  streams();
  values(v);
  containers(g);
  std::nth_element(w.begin(), w.begin() + 500, w.end());
  std::partial_sum(v.begin(), v.end(), w.begin());
  std::cout << w.back() << "\n";
  return 0;
}
