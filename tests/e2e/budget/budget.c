// budget live MEGABYTES: writes that much, then reads all of it twice, in order and all over the place.
// budget touch GIGABYTES: maps that much, writes one byte in each megabyte, and reads them again.
// budget small COUNT: that many live blocks of 32 bytes.
#include <sys/mman.h>
#include "../programs/e2e.h"

static int live(size_t megabytes) {
  uint64_t random = 9;
  size_t words = megabytes << 17;
  uint64_t* data = malloc(words * 8 + 8);
  for (size_t i = 0; i < words; ++i) data[i] = i * 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < words; ++i) CHECK(data[i] == i * 0x9e3779b97f4a7c15);
  for (int n = 0; n < 20000 && words > 0; ++n) {
    size_t i = next_random(&random) % words;
    CHECK(data[i] == i * 0x9e3779b97f4a7c15);
  }
  printf("%zu megabytes\n", megabytes);
  return 0;
}

static int touch(size_t gigabytes) {
  size_t bytes = gigabytes << 30;
  if (bytes == 0) return 0;
  unsigned char* data =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(data != MAP_FAILED);
  for (int pass = 0; pass < 2; ++pass)
    for (size_t at = 0; at < bytes; at += 1 << 20) {
      unsigned char* place = data + at + (at >> 20) * 4099 % (1 << 20);
      if (pass == 0) *place = (unsigned char)(1 + (at >> 20) % 255);
      CHECK(*place == (unsigned char)(1 + (at >> 20) % 255));
    }
  printf("%zu gigabytes\n", gigabytes);
  return 0;
}

struct Node {
  struct Node* next;
  uint64_t value[3];
};

static int small(size_t count) {
  struct Node* list = NULL;
  for (size_t i = 0; i < count; ++i) {
    struct Node* node = malloc(sizeof *node);
    node->next = list;
    node->value[0] = i;
    list = node;
  }
  for (size_t i = count; i-- > 0; list = list->next) CHECK(list->value[0] == i);
  printf("%zu blocks\n", count);
  return 0;
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  size_t amount = strtoull(argv[2], NULL, 10);
  return argv[1][0] == 'l' ? live(amount) : argv[1][0] == 't' ? touch(amount) : small(amount);
}
