// Ours: a page cache on a device. By threads: a session each. By tasks: one worker, whose tasks share a session. By a queue: one thread's,
// which hands over arrays of requests as soon as so many are free.
#include "pagecache/request_queue.h"
#include "side.h"
#include "task/scheduler.h"

namespace load {
namespace {

class Client {
 public:
  static constexpr bool kWrites = true;

  Client(pagecache::PageCache& cache, pagecache::File& file) : file_(file) { session_.open(cache); }
  void read(uint64_t offset, std::span<std::byte> to) { check(session_.read(file_, offset, to)); }
  void write(uint64_t offset, std::span<const std::byte> from) { check(session_.write(file_, offset, from)); }
  template <class Visit>
  void with_node(uint64_t page, const Visit& visit) {
    const auto view = session_.view(file_, page * kPageBytes, kPageBytes);
    if (!view) fail(1, view.error().message);
    visit(view->bytes().data());
  }

 private:
  static void check(const base::Expected<void>& done) {
    if (!done) fail(1, done.error().message);
  }

  pagecache::File& file_;
  pagecache::Session session_;
};

template <class T>
T require(base::Expected<T>&& made) {
  if (!made) fail(2, made.error().message);
  if constexpr (!std::is_void_v<T>) return *made;
}

// What is asked for by a queue: a block is one request,
class Blocks {
 public:
  struct Own : pagecache::Request {
    alignas(64) std::byte block[kBlockBytes];
    uint64_t number = 0;
  };

  explicit Blocks(const Turn& turn) : requests_(turn, turn.seed) {}
  void begin(Own& own) {
    own.number = requests_.next().block;
    own.offset = own.number * kBlockBytes;
    own.bytes = own.block;
  }
  // Is it done?
  bool end(Own& own) {
    expect(own.block, own.number);
    return true;
  }

 private:
  Requests requests_;
};

// and a key as many as there are nodes on the way to it.
class Lookups {
 public:
  struct Own : pagecache::Request {
    alignas(64) std::byte node[kPageBytes];
    std::optional<Tree::Search> search;
  };

  explicit Lookups(const Turn& turn) : turn_(turn), random_(turn.seed), at_(random_.next()) {}
  void begin(Own& own) {
    if (!own.search) own.search = turn_.tree->begin(Tree::key_of(turn_.pages.next(random_, at_)));
    own.offset = own.search->page * kPageBytes;
    own.bytes = own.node;
  }
  bool end(Own& own) {
    if (turn_.tree->step(*own.search, own.node)) return false;
    expect_value(own.search->key, own.search->value_at.has_value(),
                 {own.node + own.search->value_at.value_or(0), turn_.tree->value_bytes()});
    own.search.reset();
    return true;
  }

 private:
  const Turn& turn_;
  Random random_;
  uint64_t at_;
};

// One thread's queue, with the turn's depth under way at most.
template <class Asked>
class Asking {
 public:
  Asking(pagecache::Servers& servers, pagecache::File& file, Turn& turn)
      : turn_(turn), asked_(turn), all_(turn.depth) {
    queue_.open(servers, static_cast<uint32_t>(turn.depth));
    for (Own& own : all_) {
      own.file = &file;
      own.owner = this;
      own.done = [](pagecache::Request& ended) {
        static_cast<Asking*>(ended.owner)->end(static_cast<Own&>(ended));
      };
      free_.push_back(&own);
    }
  }
  // No more requests than the turn has.
  void work() {
    uint64_t begun = 0;
    while (turn_.goes_on(turn_.done[0]) && begun < turn_.most) {
      const size_t count = std::min<uint64_t>({kArray, (all_.size() + 1) / 2, turn_.most - begun});
      if (free_.size() < count) {
        queue_.wait();
        continue;
      }
      const std::span<pagecache::Request*> array = std::span(free_).last(count);
      for (pagecache::Request* const request : array) asked_.begin(static_cast<Own&>(*request));
      begun += queue_.submit(array);
      free_.resize(free_.size() - count);
    }
    queue_.close();
  }

 private:
  static constexpr size_t kArray = 64;
  using Own = Asked::Own;

  void end(Own& own) {
    if (!own.result) fail(1, own.result.error().message);
    if (asked_.end(own)) base::increase(turn_.done[0].value, uint64_t{1});
    free_.push_back(&own);
  }

  Turn& turn_;
  Asked asked_;
  pagecache::RequestQueue queue_;
  std::vector<Own> all_;
  std::vector<pagecache::Request*> free_;
};

class Cache final : public Side {
 public:
  explicit Cache(const Plan& plan)
      : device_(open_device(plan)),
        cache_(
            require(pagecache::PageCache::open({.memory_bytes = plan.memory_bytes, .nodes = plan.nodes}))) {
    file_ = require(cache_->add(device_));
    if (plan.nodes != 0) servers_ = require(pagecache::Servers::open(*cache_, {.threads = plan.nodes}));
  }
  ~Cache() override {
    if (servers_ != nullptr) servers_->close();
    cache_->close();
    device_.close();
  }

  void work(Turn& turn, uint64_t index) override {
    if (turn.by_tasks) return work_by_tasks(turn);
    if (turn.by_queue && turn.tree != nullptr) return Asking<Lookups>(*servers_, *file_, turn).work();
    if (turn.by_queue) return Asking<Blocks>(*servers_, *file_, turn).work();
    Client client(*cache_, *file_);
    ask(turn, index, client);
  }
  DevicePages device_pages() const override { return counted_pages(); }
  Messages messages() const override {
    if (servers_ == nullptr) return {};
    const pagecache::MessageCounts counts = servers_->counts();
    return {.requests = counts.requests, .messages = counts.request_messages + counts.reply_messages};
  }

 private:
  template <class F>
  static task::TaskParameters calls(const F& f) {
    return {.name = "bench",
            .entry = [](void* function) { (*static_cast<const F*>(function))(); },
            .argument = const_cast<F*>(&f)};
  }

  void work_by_tasks(Turn& turn) {
    task::Scheduler scheduler;
    require(scheduler.open({}));
    const auto all = [&] {
      Client client(*cache_, *file_);
      uint64_t next = 0;
      const auto one = [&] { ask(turn, 0, client, next++); };
      std::vector<task::Task*> tasks;
      for (uint64_t i = 0; i < turn.depth; ++i) tasks.push_back(require(task::spawn(calls(one))));
      for (task::Task* task : tasks) static_cast<void>(task::join(*task));
    };
    require(scheduler.run(calls(all)));
    scheduler.close();
  }

  storage::Device& device_;
  pagecache::PageCache* const cache_;
  pagecache::File* file_;
  pagecache::Servers* servers_ = nullptr;
};

}  // namespace

std::unique_ptr<Side> make_cache(const Plan& plan) { return std::make_unique<Cache>(plan); }

}  // namespace load
