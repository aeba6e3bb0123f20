#include "command_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "response_file.h"

namespace spillcc {
namespace {

using Words = std::vector<std::string>;

const Toolchain kToolchain = {"/clang", "/lib/plugin.so", "/lib"};

Words planned(const Words& words) {
  auto result = plan(words, kToolchain);
  EXPECT_TRUE(result) << result.error();
  return result.value_or(Plan{}).arguments;
}

std::string refusal(const Words& words) {
  auto result = plan(words, kToolchain);
  EXPECT_FALSE(result);
  return result ? "" : result.error();
}

bool has(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}
bool instruments(const Words& words) { return has(words, "-fpass-plugin=/lib/plugin.so"); }
bool instruments_at_link(const Words& words) { return has(words, "--load-pass-plugin=/lib/plugin.so"); }
bool links_runtime(const Words& words) { return has(words, "/lib/libspillway.so"); }
bool links_persist_runtime(const Words& words) { return has(words, "/lib/libspillway_persist.so"); }
bool links_static_runtime(const Words& words) { return has(words, "/lib/spillway-static.o"); }

TEST(CommandLine, CompilesWithThePluginAndLinksTheRuntime) {
  const Words both = planned({"-O2", "a.c", "-o", "a"});
  EXPECT_TRUE(instruments(both));
  EXPECT_TRUE(links_runtime(both));
  EXPECT_FALSE(instruments_at_link(both));
  const Words compile = planned({"-c", "a.c"});
  EXPECT_TRUE(instruments(compile));
  EXPECT_FALSE(links_runtime(compile));
}

TEST(CommandLine, PassesEverythingOnInOrder) {
  const Words given = {"-O3", "-ffast-math", "-o", "x y", "a.c", "-DX=\"1 2\"", "b.o", "-lm", "-Wl,-z,now"};
  const Words got = planned(given);
  ASSERT_GE(got.size(), given.size());
  EXPECT_EQ(Words(got.end() - static_cast<long>(given.size()), got.end()), given);
}

TEST(CommandLine, LinksOnlyWhenClangWould) {
  for (const char* stop : {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-r", "-print-prog-name=ld"}) {
    EXPECT_FALSE(links_runtime(planned({stop, "a.c"}))) << stop;
  }
  EXPECT_FALSE(links_runtime(planned({"-v"})));
  EXPECT_FALSE(links_runtime(planned({"--version"})));
  EXPECT_FALSE(links_runtime(planned({"-o", "a.c"})));  // no input: the value of -o
  EXPECT_FALSE(links_runtime(planned({"-x", "c-header", "a.txt", "-o", "a.pch"})));
  EXPECT_FALSE(links_runtime(planned({"a.hpp"})));
  EXPECT_FALSE(links_runtime(planned({"-xc", "-x", "none", "a.h"})));
  EXPECT_TRUE(links_runtime(planned({"-x", "c", "a.h"})));  // -x overrides the name: a program
  EXPECT_TRUE(links_runtime(planned({"-Wl,--version"})));
  EXPECT_TRUE(links_runtime(planned({"-x", "c", "-"})));
  EXPECT_TRUE(links_runtime(planned({"-shared", "a.o", "-o", "a.so"})));
  EXPECT_FALSE(links_runtime(planned({"-nostdlib", "a.o"})));
  EXPECT_TRUE(
      links_runtime(planned({"-shared", "-nostdlib", "crti.o", "a.o", "-lstdc++", "-lc"})));  // by libtool
}

TEST(CommandLine, RuntimePrecedesTheProgramsLibraries) {
  const Words got = planned({"a.o", "-lc"});
  EXPECT_LT(std::ranges::find(got, "/lib/libspillway.so"), std::ranges::find(got, "-lc"));
}

TEST(CommandLine, LinkTimeOptimisationInstrumentsWhenLinking) {
  for (const char* lto : {"-flto", "-flto=thin", "-flto=full"}) {
    const Words compile = planned({lto, "-c", "a.c"});
    EXPECT_FALSE(instruments(compile)) << lto;
    EXPECT_TRUE(has(compile, "-fpass-plugin=/lib/libspillway-hide.so")) << lto;
    EXPECT_FALSE(instruments_at_link(compile)) << lto;
    const Words link = planned({lto, "a.o"});
    EXPECT_FALSE(instruments(link)) << lto;
    EXPECT_TRUE(instruments_at_link(link)) << lto;
    EXPECT_TRUE(has(link, "-fuse-ld=lld")) << lto;
  }
  EXPECT_TRUE(instruments(planned({"-flto", "-fno-lto", "-c", "a.c"})));
  EXPECT_TRUE(has(planned({"-flto=thin", "-O2", "-O0", "a.o"}), "--lto-O1"));
  for (const Words& optimised :
       {Words{"-flto=thin", "-O0", "-O2", "a.o"}, {"-flto=thin", "a.o"}, {"-flto", "-O0", "a.o"}})
    EXPECT_FALSE(has(planned(optimised), "--lto-O1"));
  EXPECT_TRUE(instruments_at_link(planned({"-fuse-ld=lld", "a.o"})));
  // -r optimises the objects that it joins, and later links do not.
  const Words object = planned({"-flto", "-r", "a.o", "b.o"});
  EXPECT_TRUE(instruments_at_link(object) && has(object, "-fuse-ld=lld") && has(object, "-r"));
  EXPECT_FALSE(links_runtime(object));
  EXPECT_NE(refusal({"-flto", "-fuse-ld=gold", "a.o"}).find("lld"), std::string::npos);
}

TEST(CommandLine, LinkerMayBeNamedByItsPath) {
  EXPECT_TRUE(instruments_at_link(planned({"--ld-path=/opt/bin/ld.lld-19", "a.o"})));
  EXPECT_TRUE(instruments_at_link(planned({"--ld-path=/opt/bin/ld", "-fuse-ld=lld", "-flto", "a.o"})));
  EXPECT_TRUE(instruments_at_link(planned({"-fuse-ld=/opt/bin/ld.lld", "a.o"})));
  EXPECT_FALSE(instruments_at_link(planned({"--ld-path=/opt/lld/bin/ld.bfd", "a.o"})));
  for (const char* asks : {"-flto", "-static"}) {
    const Words got = planned({asks, "--ld-path=/opt/bin/ld.lld", "a.o"});
    EXPECT_TRUE(instruments_at_link(got)) << asks;
    EXPECT_FALSE(has(got, "-fuse-ld=lld")) << asks;
    EXPECT_TRUE(
        refusal({asks, "--ld-path=/usr/bin/ld.bfd", "a.o"}).starts_with("--ld-path=/usr/bin/ld.bfd: "))
        << asks;
    EXPECT_TRUE(refusal({asks, "-fuse-ld=gold", "--ld-path=ld.gold", "a.o"}).ends_with(asks)) << asks;
  }
}

TEST(CommandLine, LinksStatically) {
  for (const char* option : {"-static", "--static", "-static-pie"}) {
    const Words got = planned({"-O2", "a.c", option, "-o", "a"});
    EXPECT_TRUE(instruments(got) && links_static_runtime(got)) << option;
    EXPECT_TRUE(has(got, "@/lib/spillway-static.options") && has(got, "-lm")) << option;
    EXPECT_TRUE(has(got, "-fuse-ld=lld") && has(got, option)) << option;
    EXPECT_FALSE(links_runtime(got)) << option;
    const Words compile = planned({option, "-c", "a.c"});
    EXPECT_TRUE(instruments(compile)) << option;
    EXPECT_FALSE(links_static_runtime(compile) || has(compile, "-fuse-ld=lld")) << option;
    EXPECT_FALSE(links_static_runtime(planned({option, "-nostdlib", "a.o"}))) << option;
    EXPECT_TRUE(instruments_at_link(planned({option, "-flto", "a.o"}))) << option;
    const std::string other = refusal({option, "-fuse-ld=bfd", "a.o"});
    EXPECT_NE(other.find(std::string("-fuse-ld=bfd: ") + option + " needs lld"), std::string::npos) << other;
    const Words object = planned({option, "-r", "-fuse-ld=bfd", "a.o"});
    EXPECT_FALSE(links_static_runtime(object) || links_runtime(object)) << option;
    EXPECT_NE(refusal({option, "-fsanitize=address", "a.o"}).find("-fsanitize=address"), std::string::npos);
  }
  for (const char* option : {"-static-libgcc", "-static-libstdc++", "-no-pie"}) {
    const Words got = planned({option, "a.c"});
    EXPECT_TRUE(links_runtime(got)) << option;
    EXPECT_FALSE(links_static_runtime(got)) << option;
  }
  EXPECT_TRUE(links_runtime(planned({"-static", "-shared", "a.o"})));
}

TEST(CommandLine, SpillsGlobals) {
  const auto options = [](Words words) { return plan(words, kToolchain).value_or(Plan{}).plugin_options; };
  EXPECT_EQ(options({"a.c"}), "");
  EXPECT_EQ(options({"-fspill-globals", "a.c"}), "-spill-globals=65536 ");
  EXPECT_EQ(options({"-fspill-globals=1", "a.c"}), "-spill-globals=1 ");
  EXPECT_EQ(options({"-fspill-globals=3M", "a.c"}), "-spill-globals=3145728 ");
  EXPECT_EQ(options({"-fspill-globals=64k", "a.c"}), "-spill-globals=65536 ");
  EXPECT_EQ(options({"-fspill-globals", "-fspill-globals=2G", "a.c"}), "-spill-globals=2147483648 ");
  EXPECT_EQ(options({"-fspill-globals", "-fno-spill-globals", "a.c"}), "");
  EXPECT_EQ(options({"-flto", "-fspill-globals", "a.o"}), "-spill-globals=65536 ");
  EXPECT_FALSE(has(planned({"-fspill-globals=4K", "a.c"}), "-fspill-globals=4K"));
  EXPECT_EQ(planned({"-fno-spill", "-fspill-globals", "a.c"}), Words{"a.c"});
}

TEST(CommandLine, HasBodies) {
  const auto options = [](Words words) { return plan(words, kToolchain).value_or(Plan{}).plugin_options; };
  EXPECT_EQ(options({"-fspill-bodies=2", "a.c"}), "-spill-bodies=2 ");
  EXPECT_EQ(options({"-fspill-bodies=2", "-fspill-bodies=1", "a.c"}), "-spill-bodies=1 ");
  EXPECT_EQ(options({"-flto", "-fspill-bodies=2", "a.o"}), "-spill-bodies=2 ");
  EXPECT_EQ(options({"-fno-spill", "-fspill-bodies=2", "a.c"}), "");
  EXPECT_EQ(options({"-fspill-translation=satc", "a.c"}), "-spill-satc ");
  EXPECT_EQ(options({"-fspill-translation=satc", "-fspill-bodies=1", "a.c"}), "-spill-satc -spill-bodies=1 ");
  EXPECT_EQ(options({"-fspill-translation=satc", "-fspill-translation=table", "a.c"}), "");
  EXPECT_EQ(options({"-fno-spill", "-fspill-translation=satc", "a.c"}), "");
  EXPECT_FALSE(has(planned({"-fspill-translation=satc", "a.c"}), "-fspill-translation=satc"));
  EXPECT_FALSE(has(planned({"-fspill-bodies=2", "a.c"}), "-fspill-bodies=2"));
  for (const char* number : {"", "0", "3", "two"})
    EXPECT_NE(refusal({std::string("-fspill-bodies=") + number, "a.c"}).find("not a number of bodies"),
              std::string::npos);
}

TEST(CommandLine, PersistsBesideSpilling) {
  const auto options = [](Words words) { return plan(words, kToolchain).value_or(Plan{}).plugin_options; };
  EXPECT_EQ(options({"-fspill-persist", "a.c"}), "-spill-persist=flush ");
  EXPECT_EQ(options({"-fspill-persist=sample", "a.c"}), "-spill-persist=sample ");
  EXPECT_EQ(options({"-fspill-persist", "-fspill-persist=record", "-flto", "a.c"}), "-spill-persist=record ");
  EXPECT_EQ(options({"-fspill-persist", "-fno-spill-persist", "a.c"}), "");
  const Words got = planned({"-fspill-persist=sample", "a.c", "-lc"});
  EXPECT_TRUE(instruments(got) && links_runtime(got) && links_persist_runtime(got));
  EXPECT_FALSE(has(got, "-fspill-persist=sample"));
  // The C library comes after both.
  EXPECT_LT(std::ranges::find(got, "/lib/libspillway.so"),
            std::ranges::find(got, "/lib/libspillway_persist.so"));
  EXPECT_LT(std::ranges::find(got, "/lib/libspillway_persist.so"), std::ranges::find(got, "-lc"));
  EXPECT_FALSE(links_persist_runtime(planned({"a.c"})));
  EXPECT_FALSE(links_persist_runtime(planned({"-fspill-persist", "-c", "a.c"})));
  EXPECT_FALSE(links_persist_runtime(planned({"-fspill-persist", "-fno-spill-persist", "a.c"})));
}

TEST(CommandLine, PersistsWithoutSpilling) {
  const auto options = [](Words words) { return plan(words, kToolchain).value_or(Plan{}).plugin_options; };
  const Words got = planned({"-fno-spill", "-fspill-persist", "-fsanitize=address", "a.cc"});
  EXPECT_TRUE(instruments(got) && links_persist_runtime(got));
  EXPECT_FALSE(links_runtime(got) || has(got, "-cxx-isystem"));
  EXPECT_EQ(options({"-fno-spill", "-fspill-persist", "-fspill-globals", "a.c"}),
            "-spill-persist=flush -spill-translate=0 ");
  EXPECT_EQ(planned({"-fno-spill", "-fspill-persist", "-fno-spill-persist", "a.c"}), Words{"a.c"});
  // The linker instruments bitcode, and without spilling nothing is hidden.
  const Words compile = planned({"-fno-spill", "-fspill-persist", "-flto", "-c", "a.c"});
  EXPECT_FALSE(instruments(compile) || has(compile, "-fpass-plugin=/lib/libspillway-hide.so"));
  const Words link = planned({"-fno-spill", "-fspill-persist", "-flto=thin", "-O0", "a.o"});
  EXPECT_TRUE(instruments_at_link(link) && has(link, "-fuse-ld=lld") && has(link, "--lto-O1"));
  EXPECT_FALSE(links_persist_runtime(planned({"-fno-spill", "-fspill-persist", "-nostdlib", "a.o"})));
}

TEST(CommandLine, PersistsInSharedProgramsOnly) {
  for (const char* spill : {"-fspill", "-fno-spill"}) {
    for (const char* option : {"-static", "-static-pie"}) {
      const std::string said = refusal({spill, option, "-fspill-persist", "a.c"});
      EXPECT_NE(said.find(std::string(option) + ": -fspill-persist"), std::string::npos) << said;
    }
    EXPECT_TRUE(links_persist_runtime(planned({spill, "-static", "-shared", "-fspill-persist", "a.c"})));
  }
  EXPECT_NE(refusal({"-fno-spill", "-fspill-persist", "-flto", "-ffat-lto-objects", "a.c"})
                .find("-ffat-lto-objects"),
            std::string::npos);
}

TEST(CommandLine, OwnHeadersStandBeforeTheCxxLibrarys) {
  for (const char* option : {"-O2", "-E", "-flto"}) {
    const Words got = planned({option, "-c", "a.cc"});
    const auto place = std::ranges::find(got, "-cxx-isystem");
    ASSERT_NE(place, got.end()) << option;
    EXPECT_EQ(place[1], "/lib/spillway-c++");
  }
  EXPECT_FALSE(has(planned({"-fno-spill", "-c", "a.cc"}), "-cxx-isystem"));
}

TEST(CommandLine, NoSpillIsPlainClang) {
  const Words given = {"-O2", "-fsanitize=address", "-static", "a.c"};
  Words asked = given;
  asked.push_back("-fno-spill");
  EXPECT_EQ(planned(asked), given);
}

TEST(CommandLine, RefusesWhatItCannotDo) {
  EXPECT_NE(refusal({"-fsanitize=address", "a.c"}).find("-fsanitize=address"), std::string::npos);
  EXPECT_TRUE(instruments(planned({"-fsanitize=none", "a.c"})));
  for (const char* option :
       {"-fsanitize-coverage=trace-pc-guard", "-fmemory-profile", "-fmemory-profile=/tmp/profile"}) {
    EXPECT_NE(refusal({option, "a.c"}).find(std::string(option) + ": sanitizers and spilling"),
              std::string::npos);
    EXPECT_EQ(planned({"-fno-spill", option, "a.c"}), (Words{option, "a.c"}));
  }
  EXPECT_TRUE(instruments(planned({"-fmemory-profile", "-fno-memory-profile", "a.c"})));
  EXPECT_TRUE(instruments(planned({"-fmemory-profile-use=profile", "a.c"})));
  EXPECT_TRUE(instruments(planned({"-fsanitize=address", "-fno-sanitize=all", "a.c"})));
  EXPECT_TRUE(
      instruments(planned({"-fsanitize=address,undefined", "-fno-sanitize=undefined,address", "a.c"})));
  for (const char* others : {"-fno-sanitize=undefined", "-fno-sanitize=vptr", "-fsanitize=none"})
    EXPECT_TRUE(refusal({"-fsanitize=undefined,address", others, "-fno-sanitize=undefined", "a.c"})
                    .starts_with("-fsanitize=address: "))
        << others;
  EXPECT_NE(refusal({"-fspill-translation=satc", "-fspill-bodies=2", "a.c"}).find("-fspill-bodies=2"),
            std::string::npos);
  EXPECT_NE(refusal({"-fspill-translation=satc", "-fspill-globals", "a.c"}).find("-fspill-globals"),
            std::string::npos);
  EXPECT_NE(refusal({"-fspill-translation=other", "a.c"}).find("unknown"), std::string::npos);
  for (const char* size : {"", "0", "0K", "x", "64X", "1.5M", "-1", "99999999999999999999", "99999999999T"}) {
    const std::string option = std::string("-fspill-globals=") + size;
    EXPECT_NE(refusal({option, "a.c"}).find(option + ": not a size"), std::string::npos) << size;
  }
  EXPECT_NE(refusal({"-fspill-persist=all", "a.c"}).find("-fspill-persist=all: unknown"), std::string::npos);
  EXPECT_NE(refusal({"-m32", "a.c"}).find("-m32: Spillway is for 64-bit programs"), std::string::npos);
  EXPECT_NE(refusal({"-fno-spill", "-fspill-persist", "-mx32", "a.c"}).find("give -fno-spill-persist"),
            std::string::npos);
  EXPECT_TRUE(instruments(planned({"-m32", "-m64", "a.c"})));
  for (const char* target : {"aarch64-linux-gnu", "i386", "wasm32", "bpf", "x86_64-unknown-windows",
                             "x86_64-apple-darwin", "x86_64-linux-gnux32"}) {
    const std::string option = std::string("--target=") + target;
    EXPECT_NE(refusal({option, "a.c"}).find(option + ": Spillway is for programs of x86-64 Linux;"),
              std::string::npos);
    EXPECT_NE(refusal({"-target", target, "a.c"}).find(std::string("-target ") + target + ": "),
              std::string::npos);
    EXPECT_EQ(planned({"-fno-spill", option, "a.c"}), (Words{option, "a.c"}));
    EXPECT_TRUE(instruments(planned({option, "--target=x86_64-linux-gnu", "a.c"})));
  }
  EXPECT_TRUE(refusal({"-femulated-tls", "a.c"}).starts_with("-femulated-tls: the runtime's thread-local"));
  EXPECT_TRUE(refusal({"-fno-spill", "-fspill-persist", "-femulated-tls", "a.c"})
                  .ends_with("give -fno-spill-persist"));
  EXPECT_TRUE(instruments(planned({"-femulated-tls", "-fno-emulated-tls", "a.c"})));
  EXPECT_EQ(planned({"-fno-spill", "-femulated-tls", "a.c"}), (Words{"-femulated-tls", "a.c"}));
  EXPECT_FALSE(has(planned({"-fspill-translation=table", "a.c"}), "-fspill-translation=table"));
  EXPECT_NE(refusal({"-flto", "-ffat-lto-objects", "a.c"}).find("-ffat-lto-objects"), std::string::npos);
  EXPECT_TRUE(instruments(planned({"-ffat-lto-objects", "a.c"})));
  const std::string part = "-fthinlto-index=a.thinlto.bc";
  EXPECT_TRUE(
      refusal({"-O2", "-c", "-x", "ir", "a.bc", part}).starts_with(part + ": clang takes no plugin there"));
  EXPECT_TRUE(refusal({"-fno-spill", "-fspill-persist", "-flto=thin", "-c", "a.bc", part})
                  .ends_with("give -fno-spill-persist"));
  EXPECT_EQ(planned({"-fno-spill", "-c", "a.bc", part}), (Words{"-c", "a.bc", part}));
}

TEST(CommandLine, ValuesAreNeitherOptionsNorInputs) {
  EXPECT_TRUE(links_runtime(planned({"-o", "-c", "a.c"})));
  EXPECT_TRUE(links_runtime(planned({"-MF", "-fsanitize=address", "a.c"})));
}

TEST(CommandLine, PluginOptionsTravelApart) {
  auto result = plan({"-mllvm", "-spill-stats", "-mllvm", "-stats", "-c", "a.c", "-mllvm", "-spill-last=7"},
                     kToolchain);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->plugin_options, "-spill-stats -spill-last=7 ");
  EXPECT_TRUE(has(result->arguments, "-stats"));
  EXPECT_FALSE(has(result->arguments, "-spill-stats"));
}

TEST(ResponseFile, SplitsAsTheShellDoes) {
  EXPECT_EQ(tokenize("a  b\n'c d' \"e \\\" f\" g\\ h ''"), (Words{"a", "b", "c d", "e \" f", "g h", ""}));
  EXPECT_EQ(tokenize("'a\\'b'"), (Words{"a'b"}));
  EXPECT_EQ(tokenize(""), Words{});
}

TEST(ResponseFile, WhatCannotBeReadStaysAnArgument) {
  EXPECT_EQ(expand_response_files({"@/nonexistent/file", "@/", "x"}),
            (Words{"@/nonexistent/file", "@/", "x"}));
}

}  // namespace
}  // namespace spillcc
