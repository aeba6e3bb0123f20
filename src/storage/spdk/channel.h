// One I/O queue pair, and its Ios.
//
// Invariants
//  1 an Io under way has a slot. The slots are in a list in the order in which they began: the first one is the first to become too old
//  2 an Io is sent as pieces, in order, one command each. After an error no further piece begins; when none is under way any more, the Io ends
//    with the error of its first piece that has one. Until then its memory is in use by SPDK
//  3 without a queue pair nothing is under way: losing the queue pair ends everything, permanently
//  4 a connection is marked lost before an Io ends for that reason. So whoever learns of that end, and then uses the place of a write that the
//    target may still do, finds the connection lost in every channel: start() checks it
#pragma once
#include <vector>

#include "storage/spdk/connection.h"

namespace storage::spdk {

class Channel {
 public:
  // Null and an error if no queue pair can be had. Any thread but the control thread. REQUIRES: `target` outlives the channel.
  static Channel* open(Target& target, size_t depth, SpdkError& error);
  // REQUIRES: nothing is in flight.
  void close();

  void start(Io& io);
  void flush() { pump(); }
  void poll(IoList& ended);

 private:
  struct Slot {
    Io* io = nullptr;
    uint64_t give_up_ns = 0;   // when it becomes too old, by attended_ns()
    uint64_t begun_bytes = 0;  // pieces up to here have begun
    bool all_begun = false;
    uint32_t under_way_count = 0;  // of its pieces
    int error = 0;
    uint64_t error_at_bytes = 0;  // where the first piece with an error begins
    Slot* before = nullptr;       // in the list of those under way
    Slot* next = nullptr;         // in that list, or among the free ones
  };
  struct Piece {
    Channel* channel = nullptr;
    Slot* slot = nullptr;
    uint64_t at_bytes = 0;  // in the Io
    uint64_t bytes = 0;
    char* bounce = nullptr;
    uint32_t segment = 0;  // where SPDK's walk through the segments is
    uint64_t segment_at_bytes = 0;
    Piece* next = nullptr;
  };

  Channel(Target& target, size_t depth) : target_(target), slots_(depth) {}
  ~Channel();
  bool take_memory();
  uint64_t attended_ns();
  void lose_if_connection_is();
  void lose(int error);

  void pump();
  int begin_piece(Slot& slot);
  int give(Piece& piece);
  void piece_ended(Piece& piece, int error);
  void end(Slot& slot, int error);
  void end_if_over(Slot& slot);
  void copy(Piece& piece, bool to_bounce);
  static void on_completion(void* piece, const spdk_nvme_cpl* completion);
  static void reset_segments(void* piece, uint32_t offset_bytes);
  static int next_segment(void* piece, void** address, uint32_t* bytes);

  Target& target_;
  spdk_nvme_qpair* queue_ = nullptr;  // null: lost
  uint64_t piece_bytes_ = 0;
  int lost_error_ = 0;
  uint64_t attended_ns_ = 0;
  uint64_t attended_at_ns_ = 0;

  std::vector<Slot> slots_;
  Slot* free_slots_ = nullptr;
  Slot* first_ = nullptr;  // under way
  Slot* last_ = nullptr;
  Slot* to_begin_ = nullptr;  // the first one with pieces that have not begun; all after it have some, too
  std::vector<Piece> pieces_;
  Piece* free_pieces_ = nullptr;
  char* bounces_ = nullptr;
  size_t pieces_under_way_count_ = 0;
  IoList ended_;
};

}  // namespace storage::spdk
