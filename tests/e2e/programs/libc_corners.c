// Corners of the C library on spilled memory, at page edges: strings, sorting, formats, streams, expressions,
// folders, times; results and errno as natively.
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <iconv.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <netdb.h>
#include <printf.h>
#include <regex.h>
#include <search.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include "e2e.h"
static uint64_t rnd = 5;
static char* edge(size_t n) {
  char* p = aligned_alloc(4096, 8192 + ((n + 4095) & ~4095ul));
  CHECK_SPILLED(p);
  HIDE(p);
  return p + 4096 - next_random(&rnd) % (n < 4000 ? n + 1 : 4000);
}
static int cmp_d(const void* a, const void* b) {
  double x = *(double*)a, y = *(double*)b;
  return x < y ? -1 : x > y;
}
static int* weights;
static int cmp_w(const void* a, const void* b) { return weights[*(int*)a] - weights[*(int*)b]; }
static int cmp_s(const void* a, const void* b) { return strcmp(*(char**)a, *(char**)b); }
static int cmp_r(const void* a, const void* b, void* k) {
  ++*(int*)k;
  return *(int*)a - *(int*)b;
}
static int sgn(int x) { return (x > 0) - (x < 0); }
static int files;
static int on_file(const char* p, const struct stat* s, int t, struct FTW* f) {
  ++files;
  CHECK(strlen(p) > 0);
  CHECK(s->st_nlink > 0);
  return 0;
}
static int objs;
static int on_obj(struct dl_phdr_info* i, size_t n, void* d) {
  ++*(int*)d;
  ++objs;
  return 0;
}
struct big {
  char x[5000];
  int k;
};
static int cmp_b(const void* a, const void* b) { return ((struct big*)a)->k - ((struct big*)b)->k; }
struct pair {
  int number;
  char* text;
};
static int print_pair(FILE* to, const struct printf_info* info, const void* const* arguments) {
  const struct pair* p = *(const struct pair**)arguments[0];
  return fprintf(to, "<%d %s %g>", p->number, p->text, *(const double*)arguments[1]);
}
static int size_pair(const struct printf_info* info, size_t n, int* types, int* sizes) {
  if (n > 0) types[0] = PA_POINTER, sizes[0] = sizeof(void*);
  if (n > 1) types[1] = PA_DOUBLE, sizes[1] = sizeof(double);
  return 2;
}
static int real_type;
static void take_real(void* to, va_list* list) { *(double*)to = va_arg(*list, double); }
static int print_real(FILE* to, const struct printf_info* info, const void* const* arguments) {
  return fprintf(to, "(%g)", **(const double**)arguments[0]);
}
static int size_real(const struct printf_info* info, size_t n, int* types, int* sizes) {
  if (n > 0) types[0] = real_type, sizes[0] = sizeof(double);
  return 1;
}
// What calls leave behind that fail or find nothing, and streams whose calls are the kernel's.
static void failures(void) {
  char *s = edge(4000), *r = malloc(PATH_MAX);
  int* n = malloc(2 * sizeof *n);
  *n = 77;
  int rc = sscanf("", "%n%d", n, n + 1);
  printf("%d %d\n", rc, *n);
  rc = sscanf("  ", " %n%d", n, n + 1);
  printf("%d %d\n", rc, *n);
  char** m = malloc(3 * sizeof *m);
  m[0] = m[1] = m[2] = s;
  rc = sscanf("abc", "%ms %ms %ms", m, m + 1, m + 2);
  printf("%d %s %d %d\n", rc, m[0], m[1] == NULL, m[2] == s);
  m[1] = s;
  rc = sscanf("abc", "%m[0-9]%ms", m, m + 1);
  printf("%d %d %d\n", rc, m[0] == NULL, m[1] == s);
  memset(r, 'y', 100);
  r[99] = 0;
  errno = 0;
  CHECK(realpath("/tmp/no such folder/x/y", r) == NULL);
  printf("%d %s\n", errno, r);
  errno = 0;
  CHECK(realpath("", r) == NULL);
  printf("%d %s\n", errno, r);
  errno = 0;
  CHECK(getcwd(r, 0) == NULL);
  printf("%d\n", errno);
  struct tm* tm = calloc(1, sizeof *tm);
  memset(s, 'x', 100);
  s[99] = 0;
  CHECK(strftime(s, 0, "", tm) == 0 && *s == 'x');
  CHECK(strftime(s, 50, "", tm) == 0 && *s == 0);
  strcpy(s, "printed");
  printf("%d\n", puts(s));
  register_printf_specifier('W', print_pair, size_pair);
  struct pair* p = malloc(sizeof *p);
  *p = (struct pair){3, s};
  printf("%W %s %d\n", p, 2.5, s, 5);
  printf("%d %-5W %Lf %s %y %s\n", 1, p, 0.5, 1.5L, s, s);
  printf("%4$s %1$d %2$W\n", 1, p, 0.25, s);
  real_type = register_printf_type(take_real);
  register_printf_specifier('V', print_real, size_real);
  printf("%V %s %d %V %s\n", 2.5, s, 5, 0.25, s);
  printf("%d\n", putenv(strdup("=nameless")));
  char **line = malloc(sizeof *line), *foreign = s;
  size_t* room = malloc(sizeof *room);
  *line = foreign + 1;
  *room = 0;
  FILE* f = fopen("/etc/passwd", "r");
  printf("%zd %d", getline(line, room, f), *line != foreign + 1);
  fputs(*line, stdout);
  fclose(f);
  f = fopen("/tmp", "r");
  CHECK(fgetc(f) == EOF && ferror(f));
  errno = 0;
  printf("%zd %d\n", getline(line, room, f), errno);
  fclose(f);
  int* ends = malloc(2 * sizeof *ends);
  CHECK(pipe2(ends, O_NONBLOCK) == 0);
  f = fdopen(ends[0], "r");
  printf("%zd\n", getline(line, room, f));
  CHECK(write(ends[1], "one\ntwo\n", 8) == 8);
  printf("%zd\n", getdelim(line, room, '\n', f));
  clearerr(f);
  printf("%zd %s", getline(line, room, f), *line);
  // one message each
  CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
  f = fdopen(ends[0], "r+");
  setvbuf(f, NULL, _IONBF, 0);
  char *message = malloc(100000), *received = malloc(100000);
  memset(message, 'm', 100000);
  CHECK(fwrite(message, 1, 100000, f) == 100000);
  CHECK(recv(ends[1], received, 100000, 0) == 100000 && memcmp(message, received, 100000) == 0);
  CHECK(fputs(strcpy(s, "text"), f) >= 0 && recv(ends[1], received, 100, 0) == 4);
  CHECK(send(ends[1], message, 90000, 0) == 90000);
  memset(received, 0, 100000);
  CHECK(fread(received, 1, 90000, f) == 90000 && memcmp(message, received, 90000) == 0);
  fclose(f);
  // buffers of the size that was said
  for (int size = 0; size <= 70000; size += 35000) {
    f = tmpfile();
    CHECK(setvbuf(f, malloc(70000), _IOFBF, size) == 0);
    CHECK(fwrite(message, 1, 30000, f) == 30000);
    struct stat* status = malloc(sizeof *status);
    CHECK(fstat(fileno(f), status) == 0);
    printf("%d written\n", (int)status->st_size);
    fclose(f);
  }
}
// What several of the checks use.
static char** texts;          // in ascending order
static int* ascending;        // 1 to 100
static char *output, *input;  // text that functions write and read
static double* doubles;
static char *folder, *path;
static void check_strings(void) {
  for (int r = 0; r < 300; ++r) {
    size_t n = 2 + next_random(&rnd) % 6000;
    char *a = edge(2 * n + 100), *b = edge(2 * n + 100);
    for (size_t i = 0; i < 2 * n; ++i) a[i] = b[i] = 'a' + next_random(&rnd) % 25;
    size_t o = next_random(&rnd) % n;
    char* ref = malloc(2 * n);
    for (size_t i = 0; i < n; ++i) ref[i] = a[i];
    memmove(a + o, a, n);
    for (size_t i = 0; i < n; ++i) CHECK(a[o + i] == ref[i]);
    for (size_t i = 0; i < n; ++i) ref[i] = b[o + i];
    memmove(b, b + o, n);
    for (size_t i = 0; i < n; ++i) CHECK(b[i] == ref[i]);
    a[n] = 0;
    b[n] = 0;
    CHECK(strlen(a) == n);
    memset(b, 'x', 2 * n);
    strncpy(b, a, n + n / 2);
    CHECK(strlen(b) == n);
    for (size_t i = n; i < n + n / 2; ++i) CHECK(b[i] == 0);
    if (n / 2 + n < 2 * n) CHECK(b[n + n / 2] == 'x');
    CHECK(stpcpy(b, a) == b + n);
    CHECK(strcmp(a, b) == 0);
    b[n - 1]++;
    CHECK(sgn(strcmp(a, b)) == -1);
    CHECK(sgn(strncmp(a, b, n - 1)) == 0);
    CHECK(sgn(memcmp(a, b, n)) == -1);
    CHECK(strcasecmp(a, b) < 0);
    CHECK(strchr(a, 0) == a + n);
    CHECK(strchr(a, 'z') == NULL);
    CHECK(strrchr(a, a[n - 1]) == a + n - 1);
    CHECK(strpbrk(a, "zy") == strchr(a, 'y'));
    a[n / 2] = 'z';
    CHECK(strpbrk(a, "z!") == a + n / 2);
    CHECK(strcspn(a, "z") == n / 2);
    CHECK(strstr(a, "z") == a + n / 2);
    CHECK(memchr(a, 'z', n) == a + n / 2);
    CHECK(memrchr(a, 'z', n) == a + n / 2);
    CHECK(rawmemchr(a, 'z') == a + n / 2);
    CHECK(memmem(a, n, a + n / 2, n - n / 2) == a + n / 2);
    CHECK(strspn(a, "abcdefghijklmnopqrstuvwxyz") == n);
    char* save;
    int tokens = 0;
    char* dup = strdup(a);
    for (char* t = strtok_r(dup, "aeiou", &save); t; t = strtok_r(0, "aeiou", &save)) ++tokens;
    char *dup2 = strdup(a), *sp = dup2;
    int seps = 0;
    while (strsep(&sp, "aeiou")) ++seps;
    if (r % 50 == 0) printf("%d %d\n", tokens, seps);
    char* mem = mempcpy(b, a, n);
    CHECK(mem == b + n);
    CHECK(memccpy(b, a, 'z', n) == b + n / 2 + 1);
    CHECK(strncat(strcpy(b, "pre"), a, 5)[3] == a[0]);
    CHECK(strnlen(a, 10) == (n < 10 ? n : 10));
    free(dup);
    free(dup2);
    free(ref);
  }
  puts("strings");
}
static void check_sorting(void) {
  double* d = malloc(20000 * 8);
  for (int i = 0; i < 20000; ++i) d[i] = (double)(next_random(&rnd) % 1000003);
  qsort(d, 20000, 8, cmp_d);
  for (int i = 1; i < 20000; ++i) CHECK(d[i - 1] <= d[i]);
  double key = d[777];
  double* f = bsearch(&key, d, 20000, 8, cmp_d);
  CHECK(f && *f == key);
  weights = malloc(8000 * 4);
  int* ix = malloc(8000 * 4);
  for (int i = 0; i < 8000; ++i) {
    ix[i] = i;
    weights[i] = next_random(&rnd) % 1000000;
  }
  qsort(ix, 8000, 4, cmp_w);
  for (int i = 1; i < 8000; ++i) CHECK(weights[ix[i - 1]] <= weights[ix[i]]);
  texts = malloc(3000 * 8);
  for (int i = 0; i < 3000; ++i) {
    texts[i] = malloc(20);
    snprintf(texts[i], 20, "%llx", (unsigned long long)next_random(&rnd));
  }
  qsort(texts, 3000, 8, cmp_s);
  for (int i = 1; i < 3000; ++i) CHECK(strcmp(texts[i - 1], texts[i]) <= 0);
  struct big* bg = malloc(40 * sizeof *bg);
  for (int i = 0; i < 40; ++i) {
    bg[i].k = next_random(&rnd) % 100;
    bg[i].x[4999] = bg[i].k;
  }
  qsort(bg, 40, sizeof *bg, cmp_b);
  for (int i = 0; i < 40; ++i) {
    CHECK(bg[i].x[4999] == bg[i].k);
    if (i) CHECK(bg[i - 1].k <= bg[i].k);
  }
  int calls = 0;
  ascending = malloc(400);
  for (int i = 0; i < 100; ++i) ascending[i] = 100 - i;
  qsort_r(ascending, 100, 4, cmp_r, &calls);
  CHECK(ascending[0] == 1 && calls > 0);
  qsort(ascending, 0, 4, cmp_w);
  qsort(ascending, 1, 4, cmp_w);
  puts("sorted");
}
static void check_formats(void) {
  output = edge(9000);
  int* n1 = malloc(4);
  long long* n2 = malloc(8);
  wchar_t* w = malloc(100 * 4);
  wcscpy(w, L"wide");
  input = malloc(5000);
  memset(input, 'q', 4999);
  input[4999] = 0;
  int len = snprintf(output, 8000, "%s%n|%.3s|%.*s|%-10s|%ls|%5.2ls|%lln%*d|%p|%c", input, n1, input, 4,
                     input + 10, "ab", w, w, n2, 6, 42, (void*)0, 'x');
  printf("%d %d %lld %s\n", len, *n1, *n2, output + 4990);
  char* nt = malloc(4096);
  memset(nt, 'k', 4096);
  len = snprintf(output, 100, "%.10s", nt + 4086);
  CHECK(len == 10);
  printf("%d\n", snprintf(NULL, 0, "%s", input));
  len = snprintf(output, 5, "%s", input);
  printf("%d %s\n", len, output);
  printf("%2$s %1$s|%3$*4$d|\n", texts[0] + 16, texts[1] + 16, 7, 5);
  printf("%m %d %i %u %x %o %g %a %Lf %zu %jd %hhd %%\n", 1, -2, 3u, 255, 8, 1.5, 1.0, 2.5L, (size_t)9,
         (intmax_t)-9, 300);
  char* as = NULL;
  CHECK(asprintf(&as, "%s-%d", texts[5], 5) > 0);
  CHECK(strlen(as) == strlen(texts[5]) + 2);
  free(as);
}
static void check_scans(void) {
  int* si = malloc(40);
  char* sc = malloc(100);
  float* sf = malloc(8);
  double* sd = malloc(8);
  char** sm = malloc(8);
  strcpy(input, "12 0x1f hello 2.5 3.25 [abc] rest");
  int len = sscanf(input, "%d %i %s %f %lf [%[a-z]] %ms%n", si, si + 1, sc, sf, sd, sc + 50, sm, si + 2);
  printf("%d %d %d %s %g %g %s %s %d\n", len, si[0], si[1], sc, *sf, *sd, sc + 50, *sm, si[2]);
  free(*sm);
  printf("%d %d\n", sscanf("", "%d", si), sscanf("x", "%d", si));
}
static void check_numbers(void) {
  char* e;
  errno = 0;
  strcpy(input, "99999999999999999999");
  long v = strtol(input, &e, 10);
  printf("%ld %d %d\n", v, errno, (int)(e - input));
  strcpy(input, "  -0x1Fz");
  v = strtol(input, &e, 0);
  printf("%ld %s\n", v, e);
  strcpy(input, "1e400");
  errno = 0;
  printf("%g %d\n", strtod(input, &e), errno);
  strcpy(input, "nan(5)inf");
  printf("%g %s\n", strtod(input, &e), e);
  strcpy(input, "zz");
  v = strtoul(input, &e, 36);
  printf("%ld\n", v);
  printf("%d\n", atoi("12abc"));
  puts("formats");
}
static void check_streams(void) {
  FILE* fl = tmpfile();
  char* vb = malloc(70000);
  CHECK(setvbuf(fl, vb, _IOFBF, 65536) == 0);
  for (int i = 0; i < 3000; ++i) fprintf(fl, "line %d %s\n", i, texts[i]);
  rewind(fl);
  char* line = malloc(1);
  size_t cap = 1, lines = 0;
  ssize_t got;
  while ((got = getline(&line, &cap, fl)) > 0) {
    CHECK((ssize_t)strlen(line) == got);
    ++lines;
  }
  printf("%zu %d\n", lines, feof(fl) != 0);
  rewind(fl);
  cap = 0;
  free(line);
  line = NULL;
  CHECK(getdelim(&line, &cap, ' ', fl) == 5);
  CHECK(fgets(output, 100, fl) == output);
  printf("%s", output);
  fpos_t* pos = malloc(sizeof *pos);
  CHECK(fgetpos(fl, pos) == 0);
  CHECK(fgets(output, 100, fl) == output);
  CHECK(fsetpos(fl, pos) == 0);
  CHECK(fgets(output + 200, 100, fl) && !strcmp(output, output + 200));
  doubles = malloc(200000);
  for (int i = 0; i < 25000; ++i) doubles[i] = i;
  rewind(fl);
  CHECK(fwrite(doubles, 8, 25000, fl) == 25000);
  fflush(fl);
  memset(doubles, 0, 200000);
  rewind(fl);
  CHECK(fread(doubles, 8, 25000, fl) == 25000 && doubles[24999] == 24999);
  CHECK(fscanf(fl, "%*s") == EOF);
  fclose(fl);
}
static void check_streams_in_memory(void) {
  char** mop = malloc(8);
  size_t* msp = malloc(8);
  FILE* om = open_memstream(mop, msp);
  fprintf(om, "hello %s", texts[3]);
  fclose(om);
  printf("%zu %d\n", *msp, (int)strlen(*mop));
  free(*mop);
  FILE* fm = fmemopen(input, 100, "w");
  fputs("through", fm);
  fclose(fm);
  puts(input);
}
static void check_expressions(void) {
  regex_t* re = malloc(sizeof *re);
  regmatch_t* rm = malloc(3 * sizeof *rm);
  strcpy(input, "(a+)b");
  CHECK(regcomp(re, input, REG_EXTENDED) == 0);
  strcpy(input, "xxaaab");
  printf("%d %d %d\n", regexec(re, input, 2, rm, 0), rm[0].rm_so, rm[1].rm_eo);
  regfree(re);
}
static void check_conversion(void) {
  iconv_t ic = iconv_open("UTF-16LE", "UTF-8");
  strcpy(input, "h\xc3\xa9llo");
  char **ip = malloc(8), **op = malloc(8);
  size_t *il = malloc(8), *ol = malloc(8);
  *ip = input;
  *op = output;
  *il = strlen(input);
  *ol = 100;
  printf("%zd %zu\n", iconv(ic, ip, il, op, ol), *ol);
  iconv_close(ic);
}
static void check_folders(void) {
  folder = malloc(PATH_MAX);
  CHECK(getcwd(folder, PATH_MAX) == folder);
  strcat(folder, "/rvXXXXXX");
  CHECK(mkdtemp(folder) == folder);
  path = malloc(2 * PATH_MAX);
  for (int i = 0; i < 5; ++i) {
    sprintf(path, "%s/f%d", folder, i);
    close(open(path, O_CREAT | O_RDWR, 0600));
  }
  glob_t* g = malloc(sizeof *g);
  sprintf(path, "%s/f[1-3]", folder);
  printf("%d %zu\n", glob(path, 0, NULL, g), g->gl_pathc);
  printf("%s\n", strrchr(g->gl_pathv[0], '/'));
  globfree(g);
  CHECK(nftw(folder, on_file, 5, FTW_PHYS) == 0);
  printf("%d\n", files);
  struct dirent** nl;
  int* od = malloc(4);
  *od = 0;
  printf("%d\n", scandir(folder, &nl, NULL, alphasort));
  dl_iterate_phdr(on_obj, od);
  CHECK(*od == objs);
  char* rp = malloc(PATH_MAX);
  sprintf(path, "%s/../%s/f1", folder, strrchr(folder, '/') + 1);
  CHECK(realpath(path, rp));
  puts(strrchr(rp, '/'));
  CHECK(chdir(folder) == 0);
  CHECK(getcwd(rp, PATH_MAX) == rp);
  CHECK(!strcmp(rp, folder));
  CHECK(getcwd(rp, 3) == NULL && errno == ERANGE);
  CHECK(symlink(folder, "ln") == 0);
  memset(rp, '!', 100);
  printf("%d %c\n", (int)readlink("ln", rp, 4), rp[4]);
}
static void check_many_pieces(void) {
  struct iovec* iv = malloc(IOV_MAX * sizeof *iv);
  for (int i = 0; i < IOV_MAX; ++i) {
    iv[i].iov_base = doubles + i;
    iv[i].iov_len = 8;
  }
  int fd = open("v", O_CREAT | O_RDWR, 0600);
  CHECK(writev(fd, iv, IOV_MAX) == 8 * IOV_MAX);
  CHECK(writev(fd, iv, IOV_MAX + 1) == -1 && errno == EINVAL);
  memset(doubles, 0, 8 * IOV_MAX);
  CHECK(lseek(fd, 0, 0) == 0);
  CHECK(readv(fd, iv, IOV_MAX) == 8 * IOV_MAX && doubles[1000] == 1000);
}
static void check_status_file(void) {
  int pf = open("/proc/self/status", O_RDONLY);
  ssize_t pr = read(pf, output, 8000);
  CHECK(pr > 100 && !strncmp(output, "Name:", 5));
}
static void check_addresses(void) {
  struct addrinfo *hints = calloc(1, sizeof *hints), **ai = malloc(8);
  hints->ai_flags = AI_NUMERICHOST;
  strcpy(input, "127.0.0.1");
  strcpy(path, "80");
  printf("%d %d\n", getaddrinfo(input, path, hints, ai), (*ai)->ai_family);
  freeaddrinfo(*ai);
}
static void check_times(void) {
  struct tm* tm = malloc(sizeof *tm);
  time_t* tt = malloc(8);
  *tt = 1000000000;
  gmtime_r(tt, tm);
  char* tb = malloc(200);
  printf("%zu %s\n", strftime(tb, 200, "%Y-%m-%d %H:%M:%S", tm), tb);
  strcpy(input, "2020-02-29");
  memset(tm, 0, sizeof *tm);
  char* tr = strptime(input, "%Y-%m-%d", tm);
  printf("%d %d\n", (int)(tr - input), tm->tm_yday);
  printf("%ld\n", (long)timegm(tm));
  asctime_r(tm, tb);
  fputs(tb, stdout);
}
static void check_tables(void) {
  hcreate(100);
  ENTRY en = {texts[0], texts[1]};
  hsearch(en, ENTER);
  ENTRY* fe = hsearch((ENTRY){texts[0], 0}, FIND);
  CHECK(fe && fe->data == texts[1]);
  void* root = NULL;
  for (int i = 0; i < 100; ++i) tsearch(&ascending[i], &root, cmp_w);
  CHECK(cmp_w(*(int**)tfind(&ascending[7], &root, cmp_w), &ascending[7]) == 0);
}
static void remove_folder(void) {
  for (int i = 0; i < 5; ++i) {
    sprintf(path, "f%d", i);
    unlink(path);
  }
  unlink("ln");
  unlink("v");
  rmdir(folder);
}
int main(void) {
  failures();
  errno = 0;
  check_strings();
  check_sorting();
  check_formats();
  check_scans();
  check_numbers();
  check_streams();
  check_streams_in_memory();
  check_expressions();
  check_conversion();
  check_folders();
  check_many_pieces();
  check_status_file();
  check_addresses();
  check_times();
  check_tables();
  remove_folder();
  puts("end");
  return 0;
}
