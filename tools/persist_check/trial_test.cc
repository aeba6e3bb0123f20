#include "trial.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "test_history.h"

namespace persist_check {
namespace {

class TrialTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "trial_test.XXXXXX";
    folder_ = mkdtemp(name.data());
    LogBuilder log;
    log.map(1, 0x10000, std::vector<uint64_t>(1024, 0x4141414141414141), "a", 0, 8000);
    log.map(2, 0x20000, std::vector<uint64_t>(8, 0x4242424242424242), "b");
    history_ = log.history();
    for (const File& file : history_.files) content_.push_back(file.initial);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Outcome run(const std::string& command, std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    Trial trial(history_, {command, folder_, timeout});
    return trial.run(content_, "the 'last' one");
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
  History history_;
  std::vector<std::vector<Units>> content_;
};

TEST_F(TrialTest, ACommandFindsTheImages) {
  content_[0][1][0] = 0x4343434343434343;
  const Outcome outcome =
      run("test $(wc -c < {}) = 8000 && test $(tr -d A < {1}) = CCCCCCCC && grep -q BBBB {2}");
  EXPECT_TRUE(outcome.is_good) << outcome.text;
}

TEST_F(TrialTest, TellsHowItEnded) {
  EXPECT_EQ(run("exit 7").text, "exit status 7");
  EXPECT_FALSE(run("exit 7").is_good);
  EXPECT_EQ(run("kill -SEGV $$").text, "signal 11 (Segmentation fault)");
  EXPECT_EQ(run("sleep 100", std::chrono::milliseconds(50)).text, "no end within 50 ms");
  EXPECT_FALSE(run("sleep 100", std::chrono::milliseconds(50)).is_good);
  EXPECT_FALSE(run("/nowhere/command").is_good);
}

TEST_F(TrialTest, WhoIsInterruptedEndsTheCommand) {
  const std::string file = folder_ + "/sleeper";
  const pid_t checking = fork();
  if (checking == 0) {
    run("sleep 1000 & echo $! > " + file + ".new && mv " + file + ".new " + file + "; wait");
    _exit(0);
  }
  while (!std::filesystem::exists(file)) usleep(1000);
  std::string sleeper;
  std::ifstream(file) >> sleeper;
  kill(checking, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(checking, &status, 0), checking);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  // It may have ended and be a zombie, since nobody waits for it.
  const auto sleeps = [&] {
    std::ifstream facts("/proc/" + sleeper + "/stat");
    std::string line;
    std::getline(facts, line);
    const size_t name_end = line.rfind(") ");
    return name_end != std::string::npos && line[name_end + 2] == 'S';
  };
  for (int i = 0; i < 1000 && sleeps(); ++i) usleep(10'000);
  EXPECT_FALSE(sleeps());
}

TEST_F(TrialTest, GivesTheMarker) {
  EXPECT_TRUE(run("test {marker} = \"the 'last' one\"").is_good);
  EXPECT_TRUE(Trial(history_, {"x {marker}", folder_}).needs_marker());
  EXPECT_FALSE(Trial(history_, {"x", folder_}).needs_marker());
}

TEST_F(TrialTest, WhatOneRecoveryChangesTheNextDoesNotSee) {
  Trial trial(history_, {"! grep -q X {} && test $(wc -c < {}) = 8000 && echo XX > {}", folder_,
                         std::chrono::seconds(60)});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(trial.run(content_, "").is_good);
  Trial removes(history_, {"test -f {} && rm {} && mkdir {}", folder_, std::chrono::seconds(60)});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(removes.run(content_, "").is_good);
}

TEST_F(TrialTest, WhatARecoveryWritesBehindAMappingTheNextDoesNotSee) {
  LogBuilder log;
  log.map(1, 0x10000, std::vector<uint64_t>(8, 0x4141414141414141), "a", 0, 8192);
  const History history = log.history();
  const std::vector<std::vector<Units>> content = {history.files[0].initial};
  Trial trial(
      history,
      {"! grep -q X {} && test $(wc -c < {}) = 8192 && printf X | dd of={} bs=1 seek=8000 conv=notrunc",
       folder_, std::chrono::seconds(60)});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(trial.run(content, "").is_good) << i;
}

TEST_F(TrialTest, KeepsAnImage) {
  {
    Trial trial(history_, {"echo said; rm {}; test {marker}", folder_, std::chrono::seconds(60)});
    EXPECT_FALSE(trial.run(content_, "").is_good);
    EXPECT_EQ(trial.keep(content_, "it's", "bug"),
              "echo said; rm " + folder_ + "/bug.image; test 'it'\\''s'");
  }
  EXPECT_EQ(text_of("bug.image"), std::string(8000, 'A'));
  EXPECT_EQ(text_of("bug.image2"), std::string(64, 'B'));
  EXPECT_EQ(text_of("bug.txt"), "said\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/image"));
}

}  // namespace
}  // namespace persist_check
