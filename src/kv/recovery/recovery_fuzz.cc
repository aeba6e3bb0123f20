// Fuzzes a start: a small store is made once; each input changes bytes in pieces of its choice, and corrects their checks, or does not. Then the
// store is opened, read, changed, collected, closed and opened again. It may refuse, and report damaged records; it must not crash, hang, or
// return a value that was not put, unless a check other than a header's was corrected. An unchanged image opens, and has values.
//
// Input: for each change a piece (2 bytes), an offset in it (2), flags (1; the lowest bit: the check is corrected), a count (1), bytes.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "kv/media/checkpoint_format.h"
#include "kv/store.h"
#include "kv/testing/medium_device.h"

namespace {

using namespace kv;

constexpr uint64_t kBytes = 11 << 20;
constexpr int kKeys = 24;

struct Piece {
  enum Kind { kSuperblock, kHeader, kSummary, kRecord, kCheckpoint } kind;
  uint64_t at = 0;
  uint64_t bytes = 0;  // that may be changed
};

struct Image {
  Identity identity = {.store_id = 7, .secret = {}, .geometry = {kBytes, 512, 1 << 20, 10, 10}};
  std::vector<std::byte> bytes = std::vector<std::byte>(kBytes);
  std::map<std::string, std::set<std::string>> values;  // that were put
  std::vector<Piece> pieces;
};

std::string key_of(int i) { return "key" + std::to_string(i); }

uint64_t check_of(const Image& image, const void* bytes, size_t length) {
  return XXH3_64bits_withSecret(bytes, length, image.identity.secret.bytes, kSecretBytes);
}

void put_some(Image& image, Session& session, int round) {
  for (int i = 0; i < kKeys; ++i) {
    std::string value =
        key_of(i) + "#" + std::to_string(round) + std::string(static_cast<size_t>(i * 40), 'v');
    if (i == 1) value.resize(600'000, static_cast<char>('a' + round));
    if (i % 6 == 5 && round == 1) {
      CHECK(session.remove(key_of(i)).has_value());
    } else {
      CHECK(session.put(key_of(i), bytes_of(value), {.expires_ms = i % 8 == 7 ? uint64_t{1} << 47 : 0})
                .has_value());
      image.values[key_of(i)].insert(value);
    }
  }
}

void find_pieces(Image& image) {
  const Geometry& geometry = image.identity.geometry;
  for (const uint64_t offset : kSuperblockOffsets)
    image.pieces.push_back({Piece::kSuperblock, offset, offsetof(Superblock, check)});
  for (uint32_t segment = 0; segment < geometry.segment_count; ++segment) {
    SegmentHeader header;
    for (const uint64_t offset : geometry.header_offsets(segment))
      if (read_segment_header(image.identity, Bytes(image.bytes).subspan(offset, 512), header))
        image.pieces.push_back({Piece::kHeader, offset, offsetof(SegmentHeader, check)});
    const uint64_t begin = geometry.segment_offset(segment), end = begin + geometry.segment_bytes;
    if (!read_segment_header(image.identity, Bytes(image.bytes).subspan(begin, 512), header)) continue;
    SegmentFooter footer;
    if (read_footer(image.identity, header.generation, Bytes(image.bytes).subspan(end - 512, 512), footer)) {
      const uint64_t bytes = summary_grains(geometry, footer.entry_count) * uint64_t{512};
      // Several times, so that inputs choose it often enough.
      for (int i = 0; i < 8; ++i) image.pieces.push_back({Piece::kSummary, end - bytes, bytes});
    }
    for (uint64_t at = begin + 512; at < end; at += 512) {
      Record record;
      PieceHeader piece;
      const Bytes from = Bytes(image.bytes).subspan(at, end - at);
      if (header.state == SegmentState::kUsed &&
          read_record(image.identity.secret, header.generation, from, record) == Reading::kWhole)
        image.pieces.push_back({Piece::kRecord, at, record.bytes()});
      if (header.state == SegmentState::kCheckpoint && read_piece_header(image.identity, from, piece))
        for (int i = 0; i < 16; ++i) image.pieces.push_back({Piece::kCheckpoint, at, piece.bytes});
    }
  }
}

// Sealed segments, a checkpoint, a segment that was being written.
Image make_image() {
  Image image;
  for (size_t i = 0; i < kSecretBytes; ++i)
    image.identity.secret.bytes[i] = static_cast<unsigned char>(11 * i + 3);
  for (const uint64_t offset : kSuperblockOffsets)
    write_superblock(image.identity, 1, std::span(image.bytes).subspan(offset, kSuperblockBytes));
  for (uint32_t segment = 0; segment < image.identity.geometry.segment_count; ++segment)
    for (const uint64_t offset : image.identity.geometry.header_offsets(segment))
      write_segment_header(image.identity, {.state = SegmentState::kFree},
                           std::span(image.bytes).subspan(offset, 512));
  auto* const device = new MediumDevice(std::move(image.bytes));
  std::vector<std::byte> as_killed;
  for (int round = 0; round < 3; ++round) {
    Store* const store =
        *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1, .checkpoint_records = 30});
    Session session;
    CHECK(session.open(*store).has_value());
    put_some(image, session, round);
    as_killed = device->medium();
    session.close();
    CHECK(store->close().has_value());
  }
  device->close();
  image.bytes = std::move(as_killed);
  find_pieces(image);
  return image;
}

void make_right(const Image& image, const Piece& piece, std::vector<std::byte>& bytes) {
  std::byte* const at = &bytes[piece.at];
  const auto set = [](void* to, uint64_t check) { memcpy(to, &check, sizeof check); };
  switch (piece.kind) {
    case Piece::kSuperblock:
      set(at + offsetof(Superblock, check), XXH3_64bits(at, offsetof(Superblock, check)));
      return;
    case Piece::kHeader:
      set(at + offsetof(SegmentHeader, check), check_of(image, at, offsetof(SegmentHeader, check)));
      return;
    case Piece::kSummary: {
      std::byte* const footer = at + piece.bytes - sizeof(SegmentFooter);
      SegmentFooter read;
      memcpy(&read, footer, sizeof read);
      const uint64_t entries_bytes = read.entry_count * sizeof(SummaryEntry);
      if (entries_bytes <= piece.bytes)
        set(footer + offsetof(SegmentFooter, entries_check), check_of(image, at, entries_bytes));
      set(footer + offsetof(SegmentFooter, check), check_of(image, footer, offsetof(SegmentFooter, check)));
      return;
    }
    case Piece::kRecord: {
      RecordHeader header;
      memcpy(&header, at, sizeof header);
      const uint64_t length = record_bytes(header.key_bytes(), header.value_bytes);
      if (piece.at + length <= bytes.size())
        set(at, check_of(image, at + sizeof header.check, length - sizeof header.check));
      return;
    }
    case Piece::kCheckpoint: {
      PieceHeader header;
      memcpy(&header, at, sizeof header);
      if (header.bytes >= sizeof header && header.bytes <= bytes.size() - piece.at)
        set(at + offsetof(PieceHeader, body_check),
            check_of(image, at + sizeof header, header.bytes - sizeof header));
      set(at + offsetof(PieceHeader, check), check_of(image, at, offsetof(PieceHeader, check)));
      return;
    }
  }
}

std::string read_all(Session& session, Found& found) {
  std::string value(found.value_bytes(), '\0');
  const auto read = session.read_value(found, 0, std::as_writable_bytes(std::span(value)));
  return read ? value : std::string("damaged");
}

// The number of values that could be read.
int get_all(const Image& image, Session& session, bool believes) {
  int read_count = 0;
  for (const auto& [key, values] : image.values) {
    auto found = session.get(key);
    if (!found || !found->found() || found->value_bytes() > kBytes) continue;
    const std::string value = read_all(session, *found);
    if (value == "damaged") continue;
    if (believes) CHECK(values.contains(value));
    ++read_count;
  }
  return read_count;
}

// Uses the store, if it can be opened.
void use(Image& image, storage::Device& device, bool believes, bool is_changed) {
  auto opened =
      Store::open(device, {.durability = Durability::kNone, .stream_count = 1, .checkpoint_records = 10});
  if (!opened) {
    CHECK(is_changed && opened.error().message[0] != 0);
    return;
  }
  Session session;
  CHECK(session.open(**opened).has_value());
  const int read_count = get_all(image, session, believes);
  CHECK(is_changed || read_count > kKeys / 2);  // of which some were removed
  for (int i = 0; i < kKeys; i += 3) {
    const std::string value = key_of(i) + " again";
    image.values[key_of(i)].insert(value);
    if (i % 2 == 0)
      static_cast<void>(session.remove(key_of(i)));
    else if (session.put(key_of(i), bytes_of(value)))
      if (auto found = session.get(key_of(i))) CHECK(found->found() && read_all(session, *found) == value);
  }
  (*opened)->compact();
  get_all(image, session, believes);
  session.close();
  static_cast<void>((*opened)->close());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Image image = make_image();
  std::vector<std::byte> bytes = image.bytes;
  bool believes = true;
  const bool is_changed = size >= 6;
  while (size >= 6) {
    const Piece& piece = image.pieces[(data[0] | data[1] << 8) % image.pieces.size()];
    const uint64_t at = (data[2] | data[3] << 8) % piece.bytes;
    const bool is_right = (data[4] & 1) != 0;
    const size_t count = std::min<size_t>({data[5] % 32u, size - 6, piece.bytes - at});
    for (size_t i = 0; i < count; ++i) bytes[piece.at + at + i] ^= static_cast<std::byte>(data[6 + i]);
    if (is_right) make_right(image, piece, bytes);
    // A record with a corrected check is as good as put, and an index with corrected checks may give a key another one's pieces.
    believes = believes && !(is_right && piece.kind != Piece::kHeader);
    data += 6 + count;
    size -= 6 + count;
  }
  auto* const device = new MediumDevice(std::move(bytes));
  for (int turn = 0; turn < 2; ++turn) use(image, *device, believes, is_changed);
  device->close();
  return 0;
}
