// Sockets and much spilled memory: a stream takes it piece by piece, so that no copy of all is made, and the calls say
// what they say natively.
// flags: -pthread
// memory: 1M
// pages: 4K
// chaos: 1
// storage: /var/tmp
// expect: cache.evictions>=1000
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "e2e.h"

enum { kBytes = 20 << 20, kMaxGrowth = 6 << 20 };

// The most memory that the process had since the last forget_peak().
static void forget_peak(void) {
  const int file = open("/proc/self/clear_refs", O_WRONLY);
  CHECK(write(file, "5", 1) == 1);
  close(file);
}
static long peak_bytes(void) {
  char line[200];
  long kilobytes = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "VmHWM:", 6) == 0) kilobytes = atol(line + 6);
  fclose(file);
  return kilobytes << 10;
}

static char byte_at(size_t i) { return (char)(i * 2654435761u >> 13); }

struct reader {
  pthread_t thread;
  int socket;
  size_t bytes, wrong;
  int slow;
};
// Reads to the end.
static void* read_all(void* argument) {
  struct reader* reader = (struct reader*)argument;
  char* buffer = (char*)malloc(50000);
  for (ssize_t n; (n = recv(reader->socket, buffer, 50000, 0)) > 0; reader->bytes += (size_t)n) {
    for (ssize_t i = 0; i < n; ++i) reader->wrong += buffer[i] != byte_at(reader->bytes + (size_t)i);
    if (reader->slow) usleep(100);
  }
  free(buffer);
  return NULL;
}
static void start(struct reader* reader, int socket, int slow) {
  memset(reader, 0, sizeof *reader);
  reader->socket = socket;
  reader->slow = slow;
  CHECK(pthread_create(&reader->thread, NULL, read_all, reader) == 0);
}
static void finish(struct reader* reader, const char* what) {
  pthread_join(reader->thread, NULL);
  printf("%s: %zu bytes, %zu wrong\n", what, reader->bytes, reader->wrong);
  close(reader->socket);
}

static void connect_tcp(int* pair) {
  struct sockaddr_in* name = (struct sockaddr_in*)calloc(1, sizeof *name);
  socklen_t bytes = sizeof *name;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  name->sin_family = AF_INET;
  name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(listener, (struct sockaddr*)name, bytes) == 0 && listen(listener, 1) == 0);
  CHECK(getsockname(listener, (struct sockaddr*)name, &bytes) == 0);
  pair[0] = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(pair[0], (struct sockaddr*)name, bytes) == 0);
  pair[1] = accept(listener, NULL, NULL);
  CHECK(pair[1] >= 0);
  close(listener);
  free(name);
}

static void whole_at_once(const char* memory) {
  int pair[2];
  struct reader reader;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  start(&reader, pair[1], 0);
  forget_peak();
  const long before = peak_bytes();
  printf("%zd\n", send(pair[0], memory, kBytes, 0));
  const long grown = peak_bytes() - before;
  if (grown > kMaxGrowth) printf("send took %ld bytes\n", grown);
  close(pair[0]);
  finish(&reader, "send");
}

static void as_it_goes(const char* memory) {
  int pair[2];
  struct reader reader;
  connect_tcp(pair);
  CHECK(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
  start(&reader, pair[1], 1);
  forget_peak();
  const long before = peak_bytes();
  for (size_t done = 0; done < kBytes;) {
    const ssize_t n = done % 2 == 0 ? send(pair[0], memory + done, kBytes - done, MSG_NOSIGNAL)
                                    : sendto(pair[0], memory + done, kBytes - done, MSG_MORE, NULL, 0);
    if (n < 0) {
      CHECK(errno == EAGAIN);
      struct pollfd wait = {pair[0], POLLOUT, 0};
      CHECK(poll(&wait, 1, 60000) == 1);
    } else {
      done += (size_t)n;
    }
  }
  const long grown = peak_bytes() - before;
  if (grown > kMaxGrowth) printf("a loop of sends took %ld bytes\n", grown);
  close(pair[0]);
  finish(&reader, "loop");
}

static void* send_slowly(void* argument) {
  const int socket = *(int*)argument;
  char* buffer = (char*)malloc(70000);
  for (size_t done = 0; done < kBytes;) {
    const size_t n = kBytes - done < 70000 ? kBytes - done : 70000;
    for (size_t i = 0; i < n; ++i) buffer[i] = byte_at(done + i);
    for (size_t at = 0; at < n;) {
      const ssize_t sent = send(socket, buffer + at, n - at, 0);
      CHECK(sent > 0);
      at += (size_t)sent;
    }
    done += n;
  }
  free(buffer);
  return NULL;
}
static void wait_for_all(char* memory) {
  for (int message = 0; message < 2; ++message) {
    int pair[2];
    pthread_t thread;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    memset(memory, 0, kBytes);
    CHECK(pthread_create(&thread, NULL, send_slowly, &pair[0]) == 0);
    forget_peak();
    const long before = peak_bytes();
    struct iovec* vector = (struct iovec*)malloc(2 * sizeof *vector);
    vector[0].iov_base = memory;
    vector[0].iov_len = 1234567;
    vector[1].iov_base = memory + 1234567;
    vector[1].iov_len = kBytes - 1234567;
    struct msghdr header;
    memset(&header, 0, sizeof header);
    header.msg_iov = vector;
    header.msg_iovlen = 2;
    printf("%zd\n",
           message ? recvmsg(pair[1], &header, MSG_WAITALL) : recv(pair[1], memory, kBytes, MSG_WAITALL));
    const long grown = peak_bytes() - before;
    if (grown > kMaxGrowth) printf("recv took %ld bytes\n", grown);
    pthread_join(thread, NULL);
    size_t wrong = 0;
    for (size_t i = 0; i < kBytes; ++i) wrong += memory[i] != byte_at(i);
    printf("%zu wrong\n", wrong);
    // What came before the end.
    CHECK(send(pair[0], "end", 3, 0) == 3);
    close(pair[0]);
    printf("%zd\n", recv(pair[1], memory, kBytes, MSG_WAITALL));
    memcpy(memory, "\0", 1);
    close(pair[1]);
    free(vector);
  }
  for (size_t i = 0; i < kBytes; ++i) memory[i] = byte_at(i);
}

// A descriptor goes with the first byte, once; the urgent byte is the last.
static void beside_the_bytes(const char* memory) {
  enum { kMessage = 200000 };
  int pair[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  int room = 4 << 20;
  setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  memset(control, 0, sizeof control);
  struct iovec part = {(void*)memory, kMessage};
  struct msghdr header;
  memset(&header, 0, sizeof header);
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  struct cmsghdr* passed = CMSG_FIRSTHDR(&header);
  passed->cmsg_level = SOL_SOCKET;
  passed->cmsg_type = SCM_RIGHTS;
  passed->cmsg_len = CMSG_LEN(sizeof(int));
  const int one = 1;
  memcpy(CMSG_DATA(passed), &one, sizeof one);
  printf("%zd\n", sendmsg(pair[0], &header, 0));
  close(pair[0]);
  int descriptors = 0;
  size_t got = 0, wrong = 0;
  char* to = (char*)malloc(kMessage);
  for (;;) {
    part.iov_base = to;
    part.iov_len = kMessage;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(pair[1], &header, 0);
    if (n <= 0) break;
    for (ssize_t i = 0; i < n; ++i) wrong += to[i] != byte_at(got + (size_t)i);
    got += (size_t)n;
    if ((passed = CMSG_FIRSTHDR(&header)) != NULL) {
      int descriptor;
      memcpy(&descriptor, CMSG_DATA(passed), sizeof descriptor);
      CHECK(fcntl(descriptor, F_GETFD) >= 0);
      close(descriptor);
      ++descriptors;
    }
  }
  printf("%zu bytes, %zu wrong, %d descriptor\n", got, wrong, descriptors);
  close(pair[1]);

  connect_tcp(pair);
  printf("%zd\n", send(pair[0], memory, kMessage, MSG_OOB));
  for (got = 0; got < kMessage - 1;) {
    const ssize_t n = recv(pair[1], to, kMessage - 1 - got, 0);
    CHECK(n > 0);
    got += (size_t)n;
  }
  char urgent = 0;
  struct pollfd wait = {pair[1], POLLPRI, 0};
  CHECK(poll(&wait, 1, 60000) == 1);
  CHECK(recv(pair[1], &urgent, 1, MSG_OOB) == 1 && urgent == byte_at(kMessage - 1));
  close(pair[0]);
  CHECK(recv(pair[1], to, kMessage, 0) == 0);
  close(pair[1]);
  free(to);

  // Messages stay whole.
  CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  char* message = (char*)malloc(kMessage);
  CHECK(send(pair[0], memory, 150000, 0) == 150000);
  printf("%zd\n", recv(pair[1], message, kMessage, MSG_WAITALL));
  CHECK(send(pair[0], memory, kBytes, 0) == -1 && errno == EMSGSIZE);
  free(message);
  close(pair[0]);
  close(pair[1]);
}

// The kernel reads the bytes when they leave, and tells of each call when it has.
static void without_copies(const char* memory) {
  int pair[2];
  struct reader reader;
  connect_tcp(pair);
  CHECK(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
  const int one = 1;
  if (setsockopt(pair[0], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) != 0) {
    printf("no zero copy: %s\n", strerror(errno));
    return;
  }
  // Nobody reads: what comes last waits in the kernel.
  unsigned calls = 0, told = 0;
  size_t done = 0;
  for (;; ++calls) {
    const size_t n = calls == 0 ? 200000 : 40000;
    CHECK(done + n <= kBytes);
    const ssize_t sent = send(pair[0], memory + done, n, MSG_ZEROCOPY);
    if (sent < 0) break;
    done += (size_t)sent;
  }
  CHECK(calls > 1 && (errno == EAGAIN || errno == ENOBUFS));
  start(&reader, pair[1], 0);
  for (int tries = 0; told < calls && tries < 20000; ++tries) {
    char control[200];
    struct msghdr header;
    memset(&header, 0, sizeof header);
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    if (recvmsg(pair[0], &header, MSG_ERRQUEUE) < 0) {
      CHECK(errno == EAGAIN);
      usleep(1000);
      continue;
    }
    struct cmsghdr* message = CMSG_FIRSTHDR(&header);
    struct sock_extended_err error;
    memcpy(&error, CMSG_DATA(message), sizeof error);
    CHECK(error.ee_origin == SO_EE_ORIGIN_ZEROCOPY && error.ee_errno == 0);
    told += error.ee_data - error.ee_info + 1;
  }
  if (told != calls) printf("told of %u calls, there were %u\n", told, calls);
  close(pair[0]);
  pthread_join(reader.thread, NULL);
  CHECK(reader.bytes == done);
  printf("%zu wrong\n", reader.wrong);
  close(pair[1]);
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  char* memory = (char*)malloc(kBytes);
  CHECK_SPILLED(memory);
  for (size_t i = 0; i < kBytes; ++i) memory[i] = byte_at(i);
  whole_at_once(memory);
  as_it_goes(memory);
  wait_for_all(memory);
  beside_the_bytes(memory);
  without_copies(memory);
  int pair[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  close(pair[1]);
  CHECK(send(pair[0], memory, kBytes, 0) == -1 && errno == EPIPE);
  close(pair[0]);
  free(memory);
  return 0;
}
