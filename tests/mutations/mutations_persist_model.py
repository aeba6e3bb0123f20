"""Breakages of src/persist: a Governor that stays where it is not best, threads that hand lines over where it does not pay or never, a modelled device that has no limits or is not waited for."""

GOVERNOR = "src/persist/governor.cc"
DEVICE = "src/persist/model/device_model.cc"
CLEAN = "src/persist/model/clean_lines.h"
THREADS = "src/persist/model/model_device.cc"
LINES = "src/persist/model/model_lines.cc"
TOGETHER = "src/persist/together.h"
FENCE = "src/persist/thread_fence.cc"
THREAD = "src/persist/thread.cc"


def mutation(name, *patches, gtest_filter="*"):
    return {"name": name, "test": ("persist_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # The Governor
    mutation("lines meet on the wrong side", (GOVERNOR, "(rates[3] - rates[0] - last * span) / (first - last)", "(rates[3] - rates[0] + last * span) / (first - last)"), gtest_filter="GovernorTest.*"),
    mutation("the estimate is believed", (GOVERNOR, "sample_count_ < kMaxSearchSamples ? next_to_sample(highest) : 0", "0"), gtest_filter="Governor*"),
    mutation("one count more is believed to be noise's better", (GOVERNOR, "    return point.rate < low && point.count < (1 - kDistinct) * highest.count;", "    return point.rate < low;"), gtest_filter="*Governor*"),
    mutation("the way to a bound is not tried", (GOVERNOR, "if (last.rate >= low && last.count < upper_)", "if (false)"), gtest_filter="*AfterAChange*"),
    mutation("noise is a change", (GOVERNOR, "deviation - slack);\n  below_", "deviation);\n  below_"), gtest_filter="GovernorTest.*"),
    mutation("a load that becomes lighter is no change", (GOVERNOR, "std::max(above_, below_) > kChange", "above_ > kChange"), gtest_filter="GovernorTest.*"),
    mutation("a watch never probes", (GOVERNOR, "if (until_probe_ > 0 || lower_ == upper_) return;", "return;"), gtest_filter="*DoesNotShow*"),
    mutation("probes are not paid for", (GOVERNOR, "std::max(kProbeEvery, -gain / kProbeCost)", "kProbeEvery"), gtest_filter="*ExploringCosts*"),
    mutation("most flushers of those that are alike", (GOVERNOR, "while (taken->rate < alike) ++taken;", "taken = &best();"), gtest_filter="GovernorTest.*"),
    mutation("probes leave the bounds", (GOVERNOR, "return std::clamp(count, lower_, upper_);", "return count;"), gtest_filter="*Governor*"),
    mutation("an idle period is a sample", (GOVERNOR, "if (!(rate > 0)) return;", "if (rate < 0) return;"), gtest_filter="GovernorTest.*"),

    # Handing over
    mutation("one better round is believed", (TOGETHER, "wins_ == kRounds", "wins_ >= 1"), gtest_filter="Together.*"),
    mutation("a result holds for ever", (TOGETHER, "if (--hold_left_ > 0) return false;", "if (hold_left_ > 0) return false;"), gtest_filter="Together.*"),
    mutation("an idle period is one of a trial", (TOGETHER, "if (!(rate > 0)) return false;", "if (rate < 0) return false;"), gtest_filter="Together.*"),
    mutation("the Governor has no time to find its number", (TOGETHER, "is_on && round_ == 0 ? kSettlePeriods : 1", "1"), gtest_filter="Together.*"),
    mutation("flushers are tried on memory", (THREAD, "if (place.domain.kind == DomainKind::kDevice && offer_ == Offer::kNone)", "if (offer_ == Offer::kNone)"), gtest_filter="Runtime.AutoTries*"),
    mutation("flushers are never tried", (THREAD, "  if (offer_ == Offer::kWanted) offer_flushers();\n", ""), gtest_filter="Runtime.AutoTries*"),
    mutation("threads never hand over together", (THREAD, "  runtime_.flushers().try_together();\n", ""), gtest_filter="Runtime.ThreadsOnDevices*"),
    mutation("lines of a device that is forgotten are put off", (FENCE, "if (execute_again(place, line) && place.domain.device != nullptr) note_device(place.domain.device);", "execute_again(place, line);"), gtest_filter="Runtime.LinesThatArePutOff*"),

    # The modelled device
    mutation("lines that were stored to are clean", (LINES, "    device_.stored(line);\n", "    if (line == 0) device_.stored(line);\n"), gtest_filter="ModelLines.*"),
    mutation("the queue has no end", (DEVICE, "const double taken_ns = std::max(now_ns, oldest_left_ns);", "const double taken_ns = now_ns;"), gtest_filter="DeviceModelTest.*"),
    mutation("a fence waits for nothing", (DEVICE, "return std::max(now_ns, writers_[writer].taken_ns) + parameters_.fence_ns;", "return now_ns + parameters_.fence_ns;"), gtest_filter="DeviceModelTest.*"),
    mutation("a full block stays open", (DEVICE, "  if (found->lines == (1u << kBlockLines) - 1) media_ns += write_media(*found, crowd);\n", ""), gtest_filter="DeviceModelTest.*"),
    mutation("the block that was used last makes room", (DEVICE, "    if (block.used < oldest->used) oldest = &block;", "    if (block.used > oldest->used) oldest = &block;"), gtest_filter="DeviceModelTest.*"),
    mutation("a closed writer is a crowd for ever", (DEVICE, "count += writer.is_open && writer.has_flushed &&", "count += writer.has_flushed &&"), gtest_filter="DeviceModelTest.*"),
    mutation("late lines are done in no time", (DEVICE, "      idle_ns_ -= service_ns;\n", ""), gtest_filter="DeviceModelTest.*"),
    mutation("late lines wait behind later ones", (DEVICE, "if (service_ns <= std::min(idle_ns_, latest_ns_ - now_ns))", "if (false)"), gtest_filter="DeviceModelTest.*"),
    mutation("a line that is stored to stays clean", (CLEAN, "== line + 1) place.store(0, std::memory_order_relaxed);", "== line + 1) {}"), gtest_filter="CleanLinesTest.*:ModelDeviceTest.*"),
    mutation("two lines of a place are one", (CLEAN, "if (place.load(std::memory_order_relaxed) == line + 1) return false;", "if (place.load(std::memory_order_relaxed) != 0) return false;"), gtest_filter="CleanLinesTest.*"),
    mutation("nobody sleeps for the modelled device", (THREADS, "    sleep_until(clock_.wall_ns(writer.own_ns));\n", ""), gtest_filter="ModelDeviceTest.*"),
    mutation("a sleeper keeps the finest timer", (THREADS, "  if (slack_ns > 0) sys::syscall(SYS_prctl, PR_SET_TIMERSLACK, slack_ns, 0, 0, 0);\n", ""), gtest_filter="ModelDeviceTest.*"),
    mutation("writers share the modelled device without its lock", (THREADS, "    sys::LockGuard scope(lock_);\n    const uint32_t active", "    const uint32_t active"), gtest_filter="ModelDeviceTest.*"),
]
