"""Breakages of the checker of programs with persistent memory: what its recorder leaves out, images that a crash cannot leave or that are not tried,
findings that are none."""

CHECKER = "tools/persist_check/checker.cc"
FINDINGS = "tools/persist_check/findings.cc"
HISTORY = "tools/persist_check/history.cc"
IMAGES = "tools/persist_check/images.cc"
MEDIUM = "tools/persist_check/medium.cc"
OWN = "src/persist/own/own.cc"
RECORDING = "src/persist/own/recording.cc"
MODULES = "src/persist/check/modules.cc"
RECORDER = "src/persist/check/recorder.cc"
SUBCOMMAND = "tools/spillway/persist_check.cc"
TRIAL = "tools/persist_check/trial.cc"
WRITER = "src/persist/check/log_writer.cc"


def mutation(name, *patches, test="persist_analysis_test", gtest_filter="*"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


def recorder(name, *patches, gtest_filter="RecorderTest.*"):
    return mutation(name, *patches, test="persist_recorder_test", gtest_filter=gtest_filter)


MUTATIONS = [
    # The record
    recorder("stores are recorded without their first unit", (RECORDER, "const uint64_t begin = base::round_down(first, unit);", "const uint64_t begin = base::round_up(first, unit);")),
    recorder("a log that may become no larger is a signal", (WRITER, " || end > sys::file_size_limit()", ""), gtest_filter="RecorderTest.EndsWhen*"),
    recorder("a domain that no file may be as large as is a signal", (RECORDER, "!sys::failed(file) && may_be_so_large &&", "!sys::failed(file) && (may_be_so_large || true) &&"), gtest_filter="RecorderTest.Refuses*"),
    recorder("a signal ends the log", (WRITER, "sys::allocate_file(descriptor_, offset_bytes, kWindowBytes);", "sys::syscall(SYS_fallocate, descriptor_, 0, offset_bytes, kWindowBytes);"), gtest_filter="RecorderTest.Signals*"),
    recorder("what nobody told is not looked for at flushes", (RECORDER, "    find_stores(domain, begin, end, site);\n    if (log_.begin(0)", "    if (log_.begin(0)")),
    recorder("what nobody told is looked for behind the flush", (RECORDER, "are_stores_told_ || domain.bytes", "true || domain.bytes")),
    recorder("large domains are compared at fences", (RECORDER, " || domain.bytes > compare_bytes_max_", "")),
    recorder("what is told of is found once more", (RECORDER, "      *reinterpret_cast<uint64_t*>(shadow + unit) = value;\n", "")),
    recorder("a domain goes on whose end is unmapped", (RECORDER, "domains_[i].begin() < end && begin < domains_[i].end()", "domains_[i].begin() - begin < bytes")),
    recorder("a mapping that is gone is compared", (RECORDER, "  if (sys::is_mapped(domain.begin(), domain.end()))\n", "")),
    recorder("what a file has lost is compared", (RECORDER, "find_stores(domain, domain.begin(), readable_end(domain.begin(), domain.end()), site);", "find_stores(domain, domain.begin(), domain.end(), site);")),
    recorder("a child of fork records", (RECORDER, " || this_process() != process", "")),
    recorder("records are not made one at a time", (RECORDER, "    recorder.lock_.lock();\n", ""), (RECORDER, "    recorder_.lock_.unlock();\n", "")),
    recorder("the last window of a log has no end", (WRITER, "sizeof(Record) + base::round_up(bytes, 8) + sizeof(Record)", "sizeof(Record) + base::round_up(bytes, 8)")),
    recorder("records of the next window lie in the last one's place", (WRITER, "  window_offset_ += kWindowBytes;\n", "")),
    recorder("code is named once for each site", (MODULES, "address == 0 || knows(address) || ", "address == 0 || "), (MODULES, "!mapping.path.starts_with('/') || knows(mapping.begin)", "!mapping.path.starts_with('/')")),

    # What compiled code and the runtime tell
    mutation("stores past the caches told of as others", ("compiler/persist/Stores.cpp", "      S.IsPastCaches = isPastCaches(I);\n", ""), test="ctest", gtest_filter="^ir_persist_record$|^persist_check$"),
    mutation("locks are no fences when recording", (OWN, "  if (!is_ordered) __spillway_persist_thread.pending = 1;\n", ""), test="ctest", gtest_filter="^persist_check_usage$"),
    mutation("locks are no fences of copies when recording", (OWN, "  store(address, bytes, true, site);\n}", "  if (Observer* const observing = observer(); observing != nullptr) observing->store(address, bytes, true, site);\n}"), test="persist_own_test", gtest_filter="OwnRuntime.ACopyPast*"),
    mutation("a record is where the text of its option leads later", (RECORDING, "<< path;  // one that is cut off", "<< path.substr(0, 1);  // one that is cut off"), test="persist_own_test", gtest_filter="OwnRuntime.KeepsWhere*"),
    mutation("a mapping at the end of the process begins another log", (RECORDING, "    if (may_start_)\n", "    if (!recorder_.is_started())\n"), test="persist_own_test", gtest_filter="RecordingTest.*"),
    mutation("a file's path is cut off", (RECORDING, "name.size() + 1 == kPathCapacity", "name.size() == kPathCapacity"), test="persist_own_test", gtest_filter="OwnRuntime.AFileWhose*"),
    mutation("what lies behind a file's end is looked at", (OWN, "  if (mapping.is_shared && observer() != nullptr)", "  if (false)"), test="persist_own_test", gtest_filter="OwnRuntime.AMappingMay*"),
    mutation("a mapping that is gone stays a domain", (OWN, "    end_unmapped_domains();  // after", "    // after"), test="persist_own_test", gtest_filter="OwnRuntime.AFound*"),
    mutation("a mapping that is added is no file's", (OWN, "  if (path.empty()) mapping = sys::find_mapping(domain.begin);\n", ""), test="ctest", gtest_filter="^persist_check$"),
    mutation("the first flush of a mapping flushes nothing", (OWN, "    observing->store(address, bytes, false, site);\n  observing->flush", "    (void)site;\n  observing->flush"), test="ctest", gtest_filter="^persist_check_usage$"),

    # What may be on the medium
    mutation("a flush covers what comes after it", (MEDIUM, "    for (const Unfenced& flushed : unfenced_[event.thread]) make_sure(flushed.line, flushed.end);", "    for (const Unfenced& flushed : unfenced_[event.thread]) make_sure(flushed.line, lines_.at(flushed.line).end());"), gtest_filter="*MediumTest*:OneLineTest.*"),
    mutation("any thread's fence will do", (MEDIUM, "  if (event.kind == RecordKind::kFence) {\n", "  if (event.kind == RecordKind::kFence) {\n    for (const auto& [thread, list] : unfenced_)\n      for (const Unfenced& flushed : list) make_sure(flushed.line, flushed.end);\n"), gtest_filter="MediumTest.*:OneLineTest.*"),
    mutation("an ordered flush waits for a fence", (MEDIUM, "(event.flags & persist::kOrdered) != 0)\n    make_sure(id, line.end());\n  else\n", "false)\n    make_sure(id, line.end());\n  else\n"), gtest_filter="MediumTest.*:OneLineTest.*"),
    mutation("stores past the caches are never sure", (MEDIUM, "(event.flags & persist::kPastCaches) != 0) flush", "false) flush"), gtest_filter="MediumTest.*:OneLineTest.*"),
    mutation("stores are never torn", (MEDIUM, "if (!is_found && std::popcount(piece.changed) > 1)", "if (false)"), gtest_filter="MediumTest.*:OneLineTest.*"),
    mutation("what is found is torn", (MEDIUM, "if (!is_found && std::popcount(piece.changed) > 1)", "if (std::popcount(piece.changed) > 1)"), gtest_filter="MediumTest.*:OneLineTest.*"),
    mutation("the units of a torn store arrive in their order", (MEDIUM, "      choices.push_back(static_cast<uint8_t>(units));\n    return choices;", "      if ((units & (units + (changed & -changed))) == 0) choices.push_back(static_cast<uint8_t>(units));\n    return choices;"), gtest_filter="MediumTest.*:OneLineTest.*"),
    mutation("fences make nothing sure of earlier pieces", (MEDIUM, "for (size_t i = 0; i < count; ++i) apply(content", "for (size_t i = count - 1; i < count; ++i) apply(content"), gtest_filter="MediumTest.*:OneLineTest.*"),
    mutation("another mapping's content is a store", (MEDIUM, "        if (piece.is_outside) make_sure(piece.line, line.end());\n", ""), gtest_filter="OneLineTest.*"),

    # Images
    mutation("no line is held back alone", (IMAGES, "for (const bool is_ahead : {true, false})", "for (const bool is_ahead : {true})"), gtest_filter="ImagesTest.*"),
    mutation("a seed does not matter", (IMAGES, "  state_ += base::kMixStep;\n", ""), gtest_filter="*"),
    mutation("images are tried again", (CHECKER, "    if (!is_new) return std::nullopt;\n", ""), gtest_filter="CheckerTest.*"),
    mutation("images are the same whatever was marked", (CHECKER, "if (has_marker_) hash", "if (false) hash"), gtest_filter="CheckerTest.*"),
    mutation("crashes come only behind fences", (CHECKER, "if (medium.advance()) preferred.insert({i, i + 1});", "if (medium.advance()) preferred.insert(i + 1);"), gtest_filter="CheckerTest.*"),
    mutation("a failure is not narrowed to its lines", (CHECKER, "          image = other;\n", ""), gtest_filter="CheckerTest.*"),
    mutation("lines that do not matter are named", (CHECKER, "          if (!to_newest) matters[i] = false;\n", ""), gtest_filter="CheckerTest.*"),
    mutation("a recovery runs without an image", (CHECKER, "  if (history.files.empty()) return {};", "  if (false) return {};"), gtest_filter="CheckTest.*"),
    mutation("nobody is told that there is no image to recover from", (SUBCOMMAND, "if (file_count == 0 && history.damage.empty())", "if (false)"), test="ctest", gtest_filter="^persist_check_usage$"),
    mutation("stores of unknown code are not named", ("tools/persist_check/report.cc", '  if (line.held_site) text << "holds', '  if (line.held_site.value_or(0) != 0) text << "holds'), gtest_filter="CheckerTest.SaysThatStores*"),
    mutation("what a recovery changed is there for the next", (TRIAL, "    if (memcmp(there + at, wanted + at, length) == 0) continue;\n", "    if (there[at] == wanted[at]) continue;\n"), gtest_filter="TrialTest.*"),
    mutation("what a recovery wrote behind a mapping is there for the next", (TRIAL, "ftruncate(*image, static_cast<off_t>(bytes)) != 0 ||\n      ", ""), gtest_filter="TrialTest.*"),
    mutation("findings of a library are left out only where it has no debug information", ("tools/persist_check/report.cc", " || sites.library(finding.site).contains(text)", ""), test="ctest", gtest_filter="^persist_check_usage$"),
    mutation("a folder that takes no files is noticed when the program has run", (SUBCOMMAND, '  check_file_to_write("persist check: --out", json_path);\n', ""), test="ctest", gtest_filter="^persist_check_usage$"),
    mutation("whose name is empty leaves out all findings", (SUBCOMMAND, 'if (name == "--ignore" && value.empty())', "if (false)"), test="ctest", gtest_filter="^persist_check_usage$"),
    mutation("who ends a program by Ctrl-C ends its check", (SUBCOMMAND, "  ignored.sa_handler = SIG_IGN;\n", "  ignored.sa_handler = SIG_DFL;\n"), test="ctest", gtest_filter="^persist_check_usage$"),
    mutation("a program that is checked cannot be interrupted", (SUBCOMMAND, "if (before[i].sa_handler != SIG_IGN) sigaddset", "if (false) sigaddset"), test="ctest", gtest_filter="^persist_check_usage$"),
    mutation("who is interrupted leaves the command behind", (TRIAL, "    if (const pid_t child = running; child > 0) kill(-child, SIGKILL);\n", ""), gtest_filter="TrialTest.*"),
    mutation("an image is longer than its file", (TRIAL, "static_cast<off_t>(file.image_bytes)) != 0", "static_cast<off_t>(content.size() * sizeof(Units))) != 0"), gtest_filter="TrialTest.*"),

    # Findings and their source
    mutation("a store behind a flush counts as flushed", (FINDINGS, "std::max({line.flushed, line.sure, told})", "(line.flushed != 0 ? line.end() : std::max(line.sure, told))"), gtest_filter="FindingsTest.*"),
    mutation("a flush without a fence is enough", (FINDINGS, "    for (const Medium::Unfenced& flushed : medium_.unfenced())\n", "    for (const Medium::Unfenced& flushed : std::vector<Medium::Unfenced>())\n"), gtest_filter="FindingsTest.*"),
    mutation("a flush of one dirty line and others is waste", (FINDINGS, "is_needed |= use.is_dirty", "is_needed = use.is_dirty"), gtest_filter="FindingsTest.*"),
    mutation("a store past the caches needs a flush", (FINDINGS, "    if (is_past_caches) has_flushed_.insert(event.thread);\n", ""), gtest_filter="FindingsTest.*"),
    mutation("a flush that another thread has not fenced is enough", (FINDINGS, " || (use.flusher != event.thread && medium_.open_lines().contains(line))", ""), gtest_filter="FindingsTest.*"),
    mutation("what another mapping has is missing", (FINDINGS, "      if (is_mapped(*at)) continue;\n", ""), (FINDINGS, " && !is_mapped(flushed.line) &&", " &&"), gtest_filter="FindingsTest.*"),
    mutation("findings are told again when a file is mapped again", (FINDINGS, "      told = line.end();\n", ""), gtest_filter="FindingsTest.*"),
    mutation("stores beyond a mapping are taken", (HISTORY, "          record.length <= domain.bytes - (record.address - domain.begin) && record.length != 0)", "          record.length != 0)"), gtest_filter="DamageTest.*"),
    mutation("images of devices are empty", (HISTORY, "map.file_bytes != 0 ? map.file_bytes : mapped_end", "map.file_bytes"), gtest_filter="HistoryTest.AnImage*"),
    mutation("damaged records are taken", (HISTORY, "if (record.check != check_of(record, at)) throw Damage{\"no record\"};", ""), gtest_filter="DamageTest.*"),
    mutation("a file that is mapped again is another one", (HISTORY, "if (!path.empty() && history_.files[i].path == path) return i;", "if (false) return i;"), gtest_filter="HistoryTest.*"),
]
