// Functions that few programs call: for temporary names and walks of folders, for machines and accounts, for name
// servers, older masks of signals, what moves data between files and processes, and the variants that fortified sources
// and sources with 64-bit offsets call. Paths, names and structures are spilled, and cross the end of a page. What
// more programs call is in kernel_calls.c.
// levels: O2
// flags: -lresolv -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
// pages: 4K 16K
// chaos: 1
// case: => 3
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <dirent.h>
#include <dlfcn.h>
#include <error.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/fsmap.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <mntent.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nl_types.h>
#include <poll.h>
#include <pty.h>
#include <resolv.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>
#include <utmpx.h>

#include "call_arguments.h"

extern int capget(cap_user_header_t, cap_user_data_t);
extern int capset(cap_user_header_t, cap_user_data_t);
extern int pivot_root(const char*, const char*);
extern int delete_module(const char*, unsigned);
extern int pidfd_open(pid_t, unsigned);
extern int pidfd_send_signal(int, int, siginfo_t*, unsigned);

static int visited = 0;
static int visit(const char* path, const struct stat* status, int type) {
  (void)path, (void)status, (void)type;
  return ++visited, 0;
}
static int visit_more(const char* path, const struct stat* status, int type, struct FTW* place) {
  (void)place;
  return visit(path, status, type);
}
static int visit64(const char* path, const struct stat64* status, int type) {
  return visit(path, (const struct stat*)status, type);
}
static int visit64_more(const char* path, const struct stat64* status, int type, struct FTW* place) {
  (void)place;
  return visit(path, (const struct stat*)status, type);
}

static void paths(void) {
  char* folder = text("rare-XXXXXX");
  CHECK(mkdtemp(folder) == folder);
  const int at = open(folder, O_RDONLY | O_DIRECTORY);
  CHECK(at >= 0);
  CHECK(mknodat(at, text("pipe"), S_IFIFO | 0600, 0) == 0);
  CHECK(symlinkat(text("nowhere"), at, text("link")) == 0);
  char* target = zeros(100);
  volatile size_t room = 100;
  CHECK(readlinkat(at, text("link"), target, room) == 7 && memcmp(target, "nowhere", 7) == 0);
  CHECK_REACHES(lchmod(folder, 0700));
  char* entries = zeros(3000);
  off_t* position = NEW(off_t);
  CHECK(getdirentries(at, entries, 3000, position) > 0 && lseek(at, 0, SEEK_SET) == 0);
  CHECK(getdirentries64(at, entries, 3000, position) > 0);
  struct dirent*** names = NEW(struct dirent**);
  CHECK(scandirat(AT_FDCWD, folder, names, NULL, alphasort) == 4 && strcmp((*names)[2]->d_name, "link") == 0);
  struct dirent64*** names64 = NEW(struct dirent64**);
  CHECK(scandir64(folder, names64, NULL, alphasort64) == 4 && strcmp((*names64)[3]->d_name, "pipe") == 0);
  CHECK(scandirat64(AT_FDCWD, folder, names64, NULL, alphasort64) == 4);
  glob64_t* found = NEW(glob64_t);
  char* pattern = zeros(100);
  sprintf(pattern, "%s/p*", folder);
  CHECK(glob64(pattern, 0, NULL, found) == 0 && found->gl_pathc == 1 && strstr(found->gl_pathv[0], "/pipe"));
  globfree64(found);
  CHECK(ftw(folder, visit, 4) == 0 && ftw64(folder, visit64, 4) == 0);
  CHECK(nftw(folder, visit_more, 4, FTW_PHYS) == 0 && nftw64(folder, visit64_more, 4, FTW_PHYS) == 0);
  printf("visited %d\n", visited);
  char* temporary = text("rare-XXXXXX");
  CHECK(mktemp(temporary) == temporary && strlen(temporary) == 11 && strcmp(temporary, "rare-XXXXXX") != 0);
  char* bad = text("rare");
  CHECK(mktemp(bad) == bad && *bad == 0 && errno == EINVAL);
  char* name = zeros(L_tmpnam);
  CHECK(tmpnam(name) == name && strncmp(name, "/tmp/", 5) == 0);
  CHECK(tmpnam_r(name) == name && tmpnam_r(NULL) == NULL && tmpnam(NULL) != NULL);
  char* made = tempnam(folder, text("abc"));
  CHECK(made != NULL && strstr(made, "abc") != NULL);
  free(made);
  struct file_handle* handle = zeros(sizeof *handle + MAX_HANDLE_SZ);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int* mount_id = NEW(int);
  if (name_to_handle_at(AT_FDCWD, folder, handle, mount_id, 0) == 0) {
    CHECK(handle->handle_bytes < MAX_HANDLE_SZ && handle->handle_bytes > 0);
    CHECK_REACHES(open_by_handle_at(at, handle, O_RDONLY));
  } else {
    CHECK(errno != EFAULT);
  }
  FILE* table = setmntent(text("/proc/mounts"), text("r"));
  struct mntent* entry = NEW(struct mntent);
  char* line = zeros(4000);
  CHECK(table != NULL && getmntent_r(table, entry, line, 4000) != NULL && strlen(entry->mnt_dir) > 0);
  endmntent(table);
  CHECK(catopen(text("./no-such-catalogue"), 0) == (nl_catd)-1 && errno == ENOENT);
  CHECK(dlmopen(LM_ID_BASE, text("libm.so.6"), RTLD_NOW) != NULL);
  CHECK(unlinkat(at, "pipe", 0) == 0 && unlinkat(at, "link", 0) == 0 && rmdir(folder) == 0);
}

static void administration(void) {
  CHECK_REACHES(acct(text("/no/such/file")));
  CHECK_REACHES(swapon(text("/no/such/file"), 0));
  CHECK_REACHES(swapoff(text("/no/such/file")));
  CHECK_REACHES(pivot_root(text("/no/such/folder"), text("/no/such/folder")));
  CHECK_REACHES(delete_module(text("no_such_module"), O_NONBLOCK));
  CHECK_REACHES(fsopen(text("no_such_file_system"), 0));
  CHECK_REACHES(fspick(AT_FDCWD, text("/no/such/folder"), 0));
  CHECK_REACHES(open_tree(AT_FDCWD, text("/no/such/folder"), 0));
  CHECK_REACHES(move_mount(AT_FDCWD, text("/no/such/folder"), AT_FDCWD, text("/no"), 0));
  struct mount_attr* attributes = NEW(struct mount_attr);
  CHECK_REACHES(mount_setattr(AT_FDCWD, text("/no/such/folder"), 0, attributes, sizeof *attributes));
  const int context = fsopen(text("tmpfs"), 0);
  CHECK(context >= 0 || errno != EFAULT);
  if (context >= 0) {
    CHECK(fsconfig(context, FSCONFIG_SET_STRING, text("size"), text("1m"), 0) == 0);
    CHECK_REACHES(fsconfig(context, FSCONFIG_SET_BINARY, text("size"), text("1m"), 2));
    CHECK(fsconfig(context, FSCONFIG_SET_FLAG, text("no_such"), NULL, 0) == -1 && errno == EINVAL);
  }
  struct dqblk* quota = NEW(struct dqblk);
  CHECK_REACHES(quotactl(QCMD(Q_GETQUOTA, USRQUOTA), text("/dev/no"), 0, (caddr_t)quota));
  CHECK_REACHES(quotactl(QCMD(Q_GETINFO, USRQUOTA), text("/dev/no"), 0, (caddr_t)quota));
  CHECK_REACHES(quotactl(QCMD(Q_GETFMT, USRQUOTA), text("/dev/no"), 0, (caddr_t)quota));
  CHECK_REACHES(quotactl(QCMD(Q_QUOTAON, USRQUOTA), text("/dev/no"), 0, text("/no/such")));
  CHECK_REACHES(fanotify_mark(-1, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, text("/")));
  char* log = zeros(2000);
  CHECK_REACHES(klogctl(3, log, 2000));
  char* domain = zeros(100);
  volatile size_t room = 100;
  CHECK(getdomainname(domain, room) == 0);
  CHECK_REACHES(setdomainname(domain, strlen(domain)));
  struct __user_cap_header_struct* header = NEW(struct __user_cap_header_struct);
  struct __user_cap_data_struct* data = zeros(2 * sizeof *data);
  header->version = _LINUX_CAPABILITY_VERSION_3;
  CHECK(capget(header, data) == 0);
  CHECK(capset(header, data) == 0);
  header->version = 1;
  CHECK(capget(header, data) == -1 && errno == EINVAL && header->version == _LINUX_CAPABILITY_VERSION_3);
  struct utmp* entry = NEW(struct utmp);
  strcpy(entry->ut_id, "r");
  entry->ut_type = USER_PROCESS;
  char* path = text("rare.utmp");
  close(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600));
  updwtmp(path, entry);
  updwtmpx(path, (struct utmpx*)entry);
  struct stat* status = NEW(struct stat);
  CHECK(stat(path, status) == 0 && status->st_size == 2 * sizeof *entry);
  CHECK(utmpname(path) == 0);
  setutent();
  struct utmp* written = pututline(entry);
  CHECK(written == NULL || strcmp(written->ut_id, "r") == 0);
  struct utmpx* writtenx = pututxline((struct utmpx*)entry);
  CHECK(writtenx == NULL || strcmp(writtenx->ut_id, "r") == 0);
  CHECK(unlink(path) == 0);
}

static void network(void) {
  const int socket_ = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in* address = NEW(struct sockaddr_in);
  address->sin_family = AF_INET;
  CHECK_REACHES(bindresvport(socket_, address));
  struct sock_filter* code = zeros(sizeof *code);
  *code = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffff);
  struct sock_fprog* filter = NEW(struct sock_fprog);
  filter->len = 1;
  filter->filter = code;
  CHECK(setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, filter, sizeof *filter) == 0);
  // A name server of our own, whose answer says that there is no such name.
  const int server = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in* here = NEW(struct sockaddr_in);
  here->sin_family = AF_INET;
  here->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t* length = NEW(socklen_t);
  *length = sizeof *here;
  CHECK(bind(server, (struct sockaddr*)here, sizeof *here) == 0);
  CHECK(getsockname(server, (struct sockaddr*)here, length) == 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 8; ++i) {
      unsigned char* question = zeros(600);
      struct sockaddr_in* from = NEW(struct sockaddr_in);
      *length = sizeof *from;
      const ssize_t n = recvfrom(server, question, 600, 0, (struct sockaddr*)from, length);
      question[2] |= 0x80;
      question[3] = 0x80;
      sendto(server, question, (size_t)n, 0, (struct sockaddr*)from, *length);
    }
    _exit(0);
  }
  CHECK(res_init() == 0);
  struct __res_state* state = NEW(struct __res_state);
  CHECK(res_ninit(state) == 0);
  state->nscount = _res.nscount = 1;
  state->retrans = _res.retrans = 2;
  state->nsaddr_list[0] = _res.nsaddr_list[0] = *here;
  unsigned char* answer = zeros(3000);
  CHECK(res_query(text("a.test"), C_IN, T_A, answer, 3000) == -1 && (answer[2] & 0x80) != 0);
  memset(answer, 0, 100);
  CHECK(res_search(text("b.test."), C_IN, T_A, answer, 3000) == -1 && (answer[2] & 0x80) != 0);
  memset(answer, 0, 100);
  CHECK(res_querydomain(text("c"), text("test"), C_IN, T_A, answer, 3000) == -1 && (answer[2] & 0x80) != 0);
  memset(answer, 0, 100);
  CHECK(res_nquery(state, text("d.test"), C_IN, T_A, answer, 3000) == -1 && (answer[2] & 0x80) != 0);
  memset(answer, 0, 100);
  CHECK(res_nsearch(state, text("e.test."), C_IN, T_A, answer, 3000) == -1 && (answer[2] & 0x80) != 0);
  memset(answer, 0, 100);
  CHECK(res_nquerydomain(state, text("f"), text("test"), C_IN, T_A, answer, 3000) == -1 &&
        (answer[2] & 0x80) != 0);
  unsigned char* question = zeros(600);
  const int n = res_mkquery(QUERY, text("g.test"), C_IN, T_A, NULL, 0, NULL, question, 600);
  CHECK(n > 12);
  memset(answer, 0, 100);
  CHECK(res_send(question, n, answer, 3000) == n && (answer[2] & 0x80) != 0);
  memset(answer, 0, 100);
  CHECK(res_nsend(state, question, n, answer, 3000) == n && (answer[2] & 0x80) != 0);
  int* ended = NEW(int);
  CHECK(waitpid(child, ended, 0) == child && *ended == 0);
  herror(text("herror"));
}

// What follows a structure, as many elements as it says.
static void trailing_arrays(void) {
  const char path[] = "rare-extents";
  enum { kExtents = 60 };
  const int file = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
  char* block = zeros(4096);
  for (off_t i = 0; i < kExtents; ++i) CHECK(pwrite(file, block, 4096, i * 16384) == 4096);
  CHECK(file >= 0 && fsync(file) == 0);
  struct fiemap* extents = zeros(sizeof *extents + kExtents * sizeof *extents->fm_extents);
  extents->fm_length = ~0ull;
  extents->fm_extent_count = kExtents;
  CHECK_REACHES(ioctl(file, FS_IOC_FIEMAP, extents));
  for (unsigned i = 0; i < extents->fm_mapped_extents; ++i) CHECK(extents->fm_extents[i].fe_length > 0);
  struct file_dedupe_range* ranges = zeros(sizeof *ranges + 2 * sizeof *ranges->info);
  ranges->src_length = 4096;
  ranges->dest_count = 2;
  ranges->info[0].dest_fd = file;
  ranges->info[0].dest_offset = 16384;
  ranges->info[1].dest_fd = -1;
  const int compared = ioctl(file, FIDEDUPERANGE, ranges);
  CHECK(compared == 0 ? ranges->info[1].status == -EBADF : errno != EFAULT);
  struct fsmap_head* map = zeros(sizeof *map + 20 * sizeof *map->fmh_recs);
  map->fmh_count = 20;
  map->fmh_keys[1].fmr_device = map->fmh_keys[1].fmr_flags = ~0u;
  map->fmh_keys[1].fmr_physical = map->fmh_keys[1].fmr_owner = map->fmh_keys[1].fmr_offset = ~0ull;
  CHECK_REACHES(ioctl(file, FS_IOC_GETFSMAP, map));
  for (unsigned i = 0; i < map->fmh_entries; ++i) CHECK(map->fmh_recs[i].fmr_length > 0);
  int* value = NEW(int);
  CHECK(ioctl(file, FIGETBSZ, value) == 0 && *value >= 512);
  CHECK(close(file) == 0 && unlink(path) == 0);
  // The length of a filter counts instructions.
  enum { kInstructions = 200 };
  const int socket_ = socket(AF_INET, SOCK_DGRAM, 0);
  struct sock_filter* code = zeros(kInstructions * sizeof *code);
  struct sock_filter* seen = zeros(kInstructions * sizeof *seen);
  for (unsigned i = 0; i < kInstructions; ++i) code[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, i);
  code[kInstructions - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffff);
  struct sock_fprog* filter = NEW(struct sock_fprog);
  filter->len = kInstructions;
  filter->filter = code;
  CHECK(setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, filter, sizeof *filter) == 0);
  socklen_t* length = NEW(socklen_t);
  *length = kInstructions;
  CHECK(getsockopt(socket_, SOL_SOCKET, SO_GET_FILTER, seen, length) == 0 && *length == kInstructions);
  CHECK(memcmp(seen, code, kInstructions * sizeof *code) == 0);
  close(socket_);
}

// Older requests, which do not say how long their argument is.
static void requests(void) {
  int *owner = NEW(int), *other = NEW(int), *value = NEW(int);
  if (openpty(owner, other, NULL, NULL, NULL) == 0) {
    *value = 1;
    CHECK(ioctl(*owner, TIOCPKT, value) == 0);
    *value = -1;
    CHECK(ioctl(*other, TIOCGETD, value) == 0 && *value == 0);
    CHECK(ioctl(*other, TIOCSETD, value) == 0);
    *value = -1;
    CHECK(ioctl(*other, TIOCGSOFTCAR, value) == 0 && (*value == 0 || *value == 1));
    CHECK(ioctl(*other, TIOCSSOFTCAR, value) == 0);
    CHECK_REACHES(ioctl(*other, TIOCMGET, value));
    struct termio* settings = NEW(struct termio);
    CHECK(ioctl(*other, TCGETA, settings) == 0 && (settings->c_lflag & ICANON) != 0);
    settings->c_lflag &= (unsigned short)~ICANON;
    CHECK(ioctl(*other, TCSETA, settings) == 0 && ioctl(*other, TCSETAW, settings) == 0);
    CHECK(ioctl(*other, TCSETAF, settings) == 0 && ioctl(*other, TCGETA, settings) == 0);
    CHECK((settings->c_lflag & ICANON) == 0);
    char* locked = zeros(36);
    CHECK(ioctl(*other, TIOCGLCKTRMIOS, locked) == 0);
    CHECK_REACHES(ioctl(*other, TIOCSLCKTRMIOS, locked));
    close(*owner);
    close(*other);
  }
  const int stream = socket(AF_INET, SOCK_STREAM, 0), socket_ = socket(AF_INET, SOCK_DGRAM, 0);
  *value = 9;
  CHECK(ioctl(stream, SIOCATMARK, value) == 0 && *value == 0);
  *value = getpid();
  CHECK(ioctl(socket_, SIOCSPGRP, value) == 0 && ioctl(socket_, FIOSETOWN, value) == 0);
  *value = 0;
  CHECK(ioctl(socket_, SIOCGPGRP, value) == 0 && *value == getpid());
  *value = 0;
  CHECK(ioctl(socket_, FIOGETOWN, value) == 0 && *value == getpid());
  // When the last message came.
  struct sockaddr_in* here = NEW(struct sockaddr_in);
  socklen_t* here_bytes = NEW(socklen_t);
  *here_bytes = sizeof *here;
  here->sin_family = AF_INET;
  here->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(socket_, (struct sockaddr*)here, sizeof *here) == 0);
  CHECK(getsockname(socket_, (struct sockaddr*)here, here_bytes) == 0);
  struct timespec* arrival = NEW(struct timespec);
  CHECK(ioctl(socket_, SIOCGSTAMPNS, arrival) == -1 && errno == ENOENT);
  CHECK(sendto(socket_, "x", 1, 0, (struct sockaddr*)here, sizeof *here) == 1 &&
        recv(socket_, value, 1, 0) == 1);
  CHECK(ioctl(socket_, SIOCGSTAMPNS, arrival) == 0 && arrival->tv_sec > 0);
  struct ifconf* list = NEW(struct ifconf);
  list->ifc_buf = zeros(4000);
  list->ifc_len = 4000;
  CHECK(ioctl(socket_, SIOCGIFCONF, list) == 0 && list->ifc_len > 0);
  CHECK(list->ifc_req[0].ifr_name[0] != 0);
  // The device's name lies at the end of what is needed.
  struct arpreq* neighbour = NEW(struct arpreq);
  neighbour->arp_pa.sa_family = AF_INET;
  strcpy(neighbour->arp_dev, "no-such-device");
  CHECK(ioctl(socket_, SIOCGARP, neighbour) == -1 && errno == ENODEV);
  strcpy(neighbour->arp_dev, "lo");
  CHECK(ioctl(socket_, SIOCGARP, neighbour) == -1 && errno != ENODEV && errno != EFAULT);
  struct rtentry* route = NEW(struct rtentry);
  route->rt_dst.sa_family = AF_INET;
  ((struct sockaddr_in*)&route->rt_dst)->sin_addr.s_addr = htonl(0xc0000201);
  route->rt_flags = RTF_UP | RTF_HOST;
  route->rt_dev = text("no-such-device");
  CHECK(ioctl(socket_, SIOCADDRT, route) == -1 && (errno == ENODEV || errno == EPERM));
  CHECK(ioctl(socket_, SIOCDELRT, route) == -1 && (errno == ENODEV || errno == EPERM || errno == ESRCH));
  const int tunnel = open("/dev/net/tun", O_RDWR);
  if (tunnel >= 0) {
    struct ifreq* device = NEW(struct ifreq);
    device->ifr_flags = IFF_TUN | IFF_NO_PI;
    strcpy(device->ifr_name, "rare%d");
    if (ioctl(tunnel, TUNSETIFF, device) == 0) {
      CHECK(strncmp(device->ifr_name, "rare", 4) == 0 && device->ifr_name[4] != '%');
      memset(device, 0, sizeof *device);
      CHECK(ioctl(tunnel, TUNGETIFF, device) == 0 && strncmp(device->ifr_name, "rare", 4) == 0);
      CHECK((device->ifr_flags & IFF_TUN) != 0);
    } else {
      CHECK(errno != EFAULT && errno != EINVAL);
    }
    close(tunnel);
  }
  void** address = zeros(sizeof *address);
  CHECK(prctl(PR_GET_TID_ADDRESS, address) == 0 ? *address != NULL : errno == EINVAL);
  unsigned long* vector = zeros(1000);
  const int bytes = prctl(0x41555856 /* PR_GET_AUXV */, vector, 1000L, 0L, 0L);
  CHECK(bytes > 0 ? vector[0] != 0 : errno == EINVAL);
  close(stream);
  close(socket_);
}

static void fortified(void) {
  volatile size_t room = 200;
  gid_t* groups = zeros(4 * 200);
  volatile int count = 100;
  CHECK(getgroups(count, groups) >= 0);
  char* name = zeros(200);
  CHECK(gethostname(name, room) == 0 && *name != 0);
  CHECK_REACHES(getlogin_r(name, room));
  char* terminal = zeros(200);
  int *owner = NEW(int), *other = NEW(int);
  struct winsize *size = NEW(struct winsize), *seen = NEW(struct winsize);
  size->ws_row = 31;
  size->ws_col = 77;
  struct termios* settings = NEW(struct termios);
  if (openpty(owner, other, terminal, NULL, size) == 0) {
    CHECK(ioctl(*other, TIOCGWINSZ, seen) == 0 && seen->ws_row == 31 && seen->ws_col == 77);
    CHECK(ttyname_r(*other, name, room) == 0 && strcmp(name, terminal) == 0);
    CHECK(tcgetattr(*other, settings) == 0);
    settings->c_oflag &= ~(tcflag_t)OPOST;
    CHECK(tcsetattr(*other, TCSANOW, settings) == 0 && tcgetattr(*other, settings) == 0);
    CHECK((settings->c_oflag & OPOST) == 0);
    fflush(stdout);
    const pid_t child = forkpty(owner, terminal, settings, size);
    if (child == 0) {
      CHECK(ioctl(0, TIOCGWINSZ, seen) == 0 && seen->ws_col == 77);
      CHECK(write(1, "hi\n", 3) == 3);
      _exit(0);
    }
    CHECK(child > 0 && read(*owner, name, 3) == 3 && memcmp(name, "hi\n", 3) == 0);
    CHECK(waitpid(child, NULL, 0) == child);
  }
  struct pollfd* wanted = zeros(sizeof *wanted);
  struct timespec* time_ = NEW(struct timespec);
  sigset_t* mask = NEW(sigset_t);
  sigfillset(mask);
  volatile nfds_t one = 1;
  int* ends = zeros(8);
  CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
  wanted->fd = ends[0];
  wanted->events = POLLIN;
  CHECK(ppoll(wanted, one, time_, mask) == 1 && wanted->revents == POLLIN);
  FILE* zero = fopen("/dev/zero", "r");
  char* bytes = zeros(3000);
  volatile size_t items = 3000;
  memset(bytes, 1, 3000);
  CHECK(fread_unlocked(bytes, 1, items, zero) == 3000 && bytes[0] == 0 && bytes[2999] == 0);
  fclose(zero);
  unsigned char* random_ = zeros(3000);
  arc4random_buf(random_, 3000);
  int used[256] = {0}, different = 0;
  for (int i = 0; i < 3000; ++i) different += used[random_[i]]++ == 0;
  CHECK(different > 200);
}

// longjmp of fortified sources, out of a handler too.
static sigjmp_buf* out;
static void leave(int number) { longjmp(*out, number); }
static void jumps(void) {
  out = zeros(sizeof *out);
  signal(SIGUSR1, leave);
  for (volatile int i = 0; i < 300; ++i) {
    if (sigsetjmp(*out, 1) == 0) raise(SIGUSR1);
    push_out(8192);
  }
  // sets of signals, the older way
  CHECK(sigblock(sigmask(SIGUSR2)) == 0 && siggetmask() == sigmask(SIGUSR2));
  CHECK(sigsetmask(sigmask(SIGSEGV) | sigmask(SIGHUP)) == sigmask(SIGUSR2));
  push_out(3000000);  // by the fault path too
  char* spilled = text("a fault while SIGSEGV is blocked");
  CHECK(fnmatch("a *blocked", spilled, 0) == 0);
  CHECK(siggetmask() == (sigmask(SIGSEGV) | sigmask(SIGHUP)));
  sigsetmask(0);
  CHECK(sighold(SIGSEGV) == 0 && siggetmask() == sigmask(SIGSEGV) && sigrelse(SIGSEGV) == 0);
  CHECK(sighold(1000) == -1 && errno == EINVAL && siggetmask() == 0);
  CHECK(ssignal(SIGUSR1, SIG_DFL) == leave);
}

static void moving(void) {
  const int file = memfd_create("rare", 0);
  struct iovec* vector = zeros(2 * sizeof *vector);
  vector[0] = (struct iovec){text("hello "), 6};
  vector[1] = (struct iovec){text("world"), 5};
  CHECK(pwritev64v2(file, vector, 2, 0, 0) == 11);
  char* first = zeros(100);
  vector[0].iov_base = first;
  vector[1].iov_base = first + 50;
  CHECK(preadv64v2(file, vector, 2, 0, 0) == 11 && memcmp(first, "hello ", 6) == 0);
  static char there[20] = "elsewhere";
  struct iovec* remote = zeros(sizeof *remote);
  *remote = (struct iovec){there, 11};
  CHECK(process_vm_readv(getpid(), vector, 2, remote, 1, 0) == 11 && memcmp(first, "elsewh", 6) == 0);
  memcpy(first, "ELSEwh", 6);
  CHECK(process_vm_writev(getpid(), vector, 2, remote, 1, 0) == 11 && strcmp(there, "ELSEwhere") == 0);
  struct f_owner_ex* owner = NEW(struct f_owner_ex);
  owner->type = F_OWNER_PID;
  owner->pid = getpid();
  int* ends = zeros(8);
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  CHECK(fcntl(ends[0], F_SETOWN_EX, owner) == 0);
  memset(owner, 0, sizeof *owner);
  CHECK(fcntl(ends[0], F_GETOWN_EX, owner) == 0 && owner->pid == getpid());
  uint64_t* hint = NEW(uint64_t);
  CHECK(fcntl(file, F_GET_RW_HINT, hint) == 0 || errno == EINVAL);
  int* value = NEW(int);
  CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR2) == 0 && prctl(PR_GET_PDEATHSIG, value) == 0 && *value == SIGUSR2);
  CHECK(prctl(PR_GET_CHILD_SUBREAPER, value) == 0 && *value == 0);
  unsigned* processor = zeros(8);
  CHECK(getcpu(processor, processor + 1) == 0);
  struct timespec* resolution = NEW(struct timespec);
  CHECK(timespec_getres(resolution, TIME_UTC) == TIME_UTC && resolution->tv_nsec > 0);
  struct timex* clock_ = NEW(struct timex);
  CHECK_REACHES(ntp_adjtime(clock_));
  siginfo_t* info = NEW(siginfo_t);
  info->si_signo = SIGUSR1;
  info->si_code = SI_QUEUE;
  signal(SIGUSR1, SIG_IGN);
  const int self = pidfd_open(getpid(), 0);
  CHECK(self < 0 || pidfd_send_signal(self, SIGUSR1, info, 0) == 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    struct sock_filter* code = zeros(sizeof *code);
    *code = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x7fff0000);  // everything is allowed
    struct sock_fprog* filter = NEW(struct sock_fprog);
    filter->len = 1;
    filter->filter = code;
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, 2, filter) == 0 || errno == EINVAL);
    char** arguments = zeros(4 * sizeof *arguments);
    arguments[0] = text("sh");
    arguments[1] = text("-c");
    arguments[2] = text("exit $CODE");
    char** environment = zeros(2 * sizeof *environment);
    environment[0] = text("CODE=23");
    execveat(AT_FDCWD, text("/bin/sh"), arguments, environment, 0);
    _exit(1);
  }
  int* ended = NEW(int);
  CHECK(waitpid(child, ended, 0) == child && WEXITSTATUS(*ended) == 23);
}

static void messages(void) {
  fflush(stdout);
  program_invocation_name = "rare";
  errno = 0;
  setvbuf(stderr, NULL, _IOFBF, 4096);
  char* long_text = zeros(4000);
  memset(long_text, 'm', 3999);
  error(0, ENOENT, text("%s, %d and %.10s"), text("one"), 2, long_text);
  error_at_line(0, 0, text("file.c"), 12, text("%s"), long_text);
  error_one_per_line = 1;
  error_at_line(0, 0, text("one.c"), 5, text("%s"), text("shown"));
  error_at_line(0, 0, text("one.c"), 5, text("%s"), text("of the same line"));
  error_at_line(0, 0, text("two.c"), 5, text("%s"), text("of another file"));
  fflush(stderr);
  error(3, 0, "%s", text("the end"));
}

int main(void) {
  paths();
  administration();
  network();
  trailing_arrays();
  requests();
  fortified();
  jumps();
  moving();
  messages();
  return 0;
}
