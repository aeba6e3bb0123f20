#include "server/net/stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/single_writer.h"
#include "sys/kernel.h"
#include "task/scheduler.h"

namespace server {

task::Limit Stream::limit_of(uint64_t ns, bool cancellable) const {
  return {.deadline_ns = exchange_end_ns_, .within_ns = ns, .cancellable = cancellable};
}

void Stream::close() {
  channel_.close();
  drop_output();
  text_.reset();
  in_.reset();
  first_ = end_ = 0;
}

// --- what comes ---

void Stream::begin_exchange() {
  const uint64_t now_ns = sys::monotonic_ns();
  exchange_end_ns_ = now_ns + std::min(options_.exchange_ns, task::kNever - now_ns);
}

void Stream::consume(size_t bytes) {
  CHECK_LE(bytes, end_ - first_);
  first_ += bytes;
  if (first_ == end_) first_ = end_ = 0;
}

// Makes sure that in_ has room behind the input.
base::Expected<void> Stream::make_room() {
  const size_t used = end_ - first_;
  if (in_.bytes().empty()) return in_.take(pool_, kInputBytes);
  if (end_ < in_.bytes().size() && (first_ == 0 || end_ < in_.bytes().size() / 2)) return {};
  if (used <= in_.bytes().size() / 2) {
    memmove(at(0), at(first_), used);
    first_ = 0;
    end_ = used;
    return {};
  }
  if (used >= options_.input_bytes_max)
    return base::failure(EMSGSIZE, "a request of more than ", options_.input_bytes_max, " bytes");
  Memory larger;
  if (auto taken = larger.take(pool_, in_.bytes().size() * 2); !taken) return taken;
  memcpy(larger.bytes().data(), at(first_), used);
  in_ = std::move(larger);
  first_ = 0;
  end_ = used;
  return {};
}

// Sends, and waits until there may be input. False: the server drains, and no request has begun.
base::Expected<bool> Stream::wait(uint64_t ns) {
  if (auto sent = send(); !sent) return std::unexpected(sent.error());
  const bool is_between = end_ == first_ && !is_skipping_;
  if (channel_.has_more()) {
    // It was received ahead, or is left over from what TLS handles itself.
    task::yield();
    if (exchange_end_ns_ == task::kNever || sys::monotonic_ns() < exchange_end_ns_) return true;
    return base::failure(ETIMEDOUT, "no whole request in time");
  }
  if (is_between && is_draining_) return false;
  if (is_between) {
    in_.reset();
    text_.reset();
  }
  waits_for_request_ = is_between;
  // If the task was cancelled by the server's drain, a request may have begun just before: its rest is waited for.
  auto waited = channel_.wait_for_input(limit_of(ns, is_between || !is_draining_));
  waits_for_request_ = false;
  if (!waited && is_between && is_draining_) return false;
  was_idle_ = !waited && waited.error().number == ETIMEDOUT;
  if (!waited) return std::unexpected(waited.error());
  return true;
}

// Receives without waiting. 0: the end of the stream; none: nothing is there.
base::Expected<std::optional<size_t>> Stream::receive_now(std::span<std::byte> to) {
  auto received = channel_.receive(to, limit_of(options_.send_ns, !is_draining_));
  if (received && *received) base::increase(received_bytes_, uint64_t{**received});
  return received;
}

base::Expected<bool> Stream::receive_in(uint64_t ns) {
  // The client may send as fast as it is answered, for ever: the worker's other tasks run in between.
  if (channel_.has_more()) task::yield();
  for (;;) {
    if (channel_.has_more()) {
      if (auto made = make_room(); !made) return std::unexpected(made.error());
      // No more at a time, even where there is room for a long request: others run only when what has come is answered.
      const std::span<std::byte> to = in_.bytes().subspan(end_);
      auto received = receive_now(to.first(std::min(to.size(), kInputBytes)));
      if (!received) return std::unexpected(received.error());
      if (*received) {
        end_ += **received;
        return **received != 0;
      }
    }
    if (auto waited = wait(ns); !waited || !*waited) return waited;
  }
}

base::Expected<bool> Stream::receive() { return receive_in(options_.idle_ns); }

base::Expected<std::optional<bool>> Stream::receive_within(uint64_t ns) {
  CHECK(pieces_.empty() && text_bytes_ == text_first_);
  auto received = receive_in(ns);
  if (received) return *received;
  if (received.error().number == ETIMEDOUT) {
    was_idle_ = false;
    return std::nullopt;
  }
  return std::unexpected(received.error());
}

base::Expected<bool> Stream::receive_at_least(size_t bytes) {
  while (end_ - first_ < bytes)
    if (auto received = receive(); !received || !*received) return received;
  return true;
}

base::Expected<bool> Stream::receive_into(size_t from, std::span<std::byte> memory) {
  CHECK_LE(from, end_ - first_);
  const size_t has = std::min(memory.size(), end_ - first_ - from);
  if (has != 0) {
    memcpy(memory.data(), at(first_ + from), has);
    memmove(at(first_ + from), at(first_ + from + has), end_ - first_ - from - has);
    end_ -= has;
    memory = memory.subspan(has);
  }
  while (!memory.empty()) {
    if (channel_.has_more()) {
      auto received = receive_now(memory);
      if (!received) return std::unexpected(received.error());
      if (*received) {
        if (**received == 0) return false;
        memory = memory.subspan(**received);
        // TLS delivers a long value in many pieces, and there may always be another one.
        if (!memory.empty() && channel_.has_more()) task::yield();
        continue;
      }
    }
    if (auto sent = send(); !sent) return std::unexpected(sent.error());
    if (channel_.has_more()) {
      task::yield();  // as in wait()
      continue;
    }
    auto waited = channel_.wait_for_input(limit_of(options_.idle_ns, !is_draining_));
    was_idle_ = !waited && waited.error().number == ETIMEDOUT;
    if (!waited) return std::unexpected(waited.error());
  }
  return true;
}

base::Expected<bool> Stream::skip(uint64_t bytes) {
  base::Expected<bool> received = true;
  is_skipping_ = true;
  for (;;) {
    const size_t now = std::min<uint64_t>(bytes, end_ - first_);
    consume(now);
    bytes -= now;
    if (bytes == 0) break;
    received = receive();
    if (!received || !*received) break;
  }
  is_skipping_ = false;
  return received;
}

// --- what is to be sent ---

base::Expected<std::span<char>> Stream::room(size_t bytes) {
  CHECK_LE(bytes, kTextBytes);
  if (!text_.bytes().empty() && text_.bytes().size() - text_bytes_ < bytes)
    if (auto sent = send(); !sent) return std::unexpected(sent.error());
  if (text_.bytes().empty())
    if (auto taken = text_.take(pool_, kTextBytes); !taken) return std::unexpected(taken.error());
  return std::span(reinterpret_cast<char*>(text_.bytes().data()), text_.bytes().size()).subspan(text_bytes_);
}

void Stream::wrote(size_t bytes) {
  CHECK_LE(bytes, text_.bytes().size() - text_bytes_);
  text_bytes_ += bytes;
}

base::Expected<void> Stream::write(std::string_view text) {
  while (!text.empty()) {
    auto to = room(std::min(text.size(), kTextBytes));
    if (!to) return std::unexpected(to.error());
    const size_t now = std::min(text.size(), to->size());
    memcpy(to->data(), text.data(), now);
    wrote(now);
    text = text.substr(now);
  }
  return {};
}

// The text that was written since the last piece becomes a piece.
void Stream::end_text_piece() {
  if (text_bytes_ == text_first_) return;
  pieces_.push_back({.iov_base = text_.bytes().data() + text_first_, .iov_len = text_bytes_ - text_first_});
  text_first_ = text_bytes_;
}

base::Expected<bool> Stream::begin_value(Items& items, Item& item, uint64_t offset, uint64_t bytes) {
  if (!item.is_large() || bytes == 0) return true;
  const size_t most = std::min<uint64_t>(bytes, kPartBytes);
  if (auto taken = part_.take(pool_, most); !taken) return std::unexpected(taken.error());
  auto read = items.read(item, offset, part_.bytes().first(most));
  if (read) return part_bytes_ = *read, true;
  part_.reset();
  if (read.error().number == ESTALE) return false;
  return std::unexpected(read.error());
}

base::Expected<void> Stream::write_value(Items& items, Item&& item, std::string_view end) {
  if (item.is_large()) {
    if (auto written = write_part(items, item, 0, item.value_bytes()); !written) return written;
    return write(end);
  }
  const kv::Bytes value = item.value();
  if (value.size() <= kMaxCopiedBytes) {
    if (auto written = write(kv::text_of(value)); !written) return written;
    return write(end);
  }
  if (pieces_.size() + 3 > kMaxPieces || kept_bytes_ + value.size() > kMaxKeptBytes)
    if (auto sent = send(); !sent) return sent;
  end_text_piece();
  pieces_.push_back({.iov_base = const_cast<std::byte*>(value.data()), .iov_len = value.size()});
  kept_bytes_ += value.size();
  kept_.push_back(std::move(item));
  return write(end);
}

base::Expected<void> Stream::write_part(Items& items, Item& item, uint64_t offset, uint64_t bytes) {
  if (!item.is_large()) return write(kv::text_of(item.value().subspan(offset, bytes)));
  base::Expected<void> done;
  for (const uint64_t end = offset + bytes; offset < end && done;) {
    end_text_piece();
    pieces_.push_back({.iov_base = part_.bytes().data(), .iov_len = part_bytes_});
    offset += part_bytes_;
    done = send();
    if (!done || offset == end) break;
    auto read = items.read(item, offset, part_.bytes().first(std::min<uint64_t>(end - offset, kPartBytes)));
    if (!read) return std::unexpected(read.error());
    part_bytes_ = *read;
  }
  part_.reset();
  return done;
}

base::Expected<void> Stream::send() {
  // A draining server cancels a task that waits for a request; one may just have come, whose reply must still be sent.
  return send_by(limit_of(options_.send_ns, !is_draining_));
}

base::Expected<void> Stream::send_within(uint64_t ns) {
  return send_by({.deadline_ns = sys::monotonic_ns() + ns});
}

base::Expected<void> Stream::send_by(const task::Limit& limit) {
  end_text_piece();
  if (pieces_.empty()) return {};
  for (const iovec& piece : pieces_) base::increase(sent_bytes_, uint64_t{piece.iov_len});
  auto sent = channel_.send(pieces_, limit);
  drop_output();
  return sent;
}

void Stream::drop_output() {
  pieces_.clear();
  kept_.clear();
  kept_bytes_ = 0;
  text_bytes_ = text_first_ = 0;
}

bool Stream::drain() {
  is_draining_ = true;
  return waits_for_request_;
}

void Stream::cut_off() { ::shutdown(channel_.descriptor(), SHUT_RDWR); }

}  // namespace server
