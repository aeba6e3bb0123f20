// The first program of a virtual machine (nvme_vm.py): does what it is told on each of two serial lines.
//
// A line is a list of words with tabs between them:
//   run [NAME=VALUE...] PROGRAM [ARGUMENT...]   with the line as its input and output; then "@ STATUS"
//   put PATH TEXT                               into a file, as of /sys; then "@ ERROR"
//   get PATH                                    its first line; then "@ ERROR"
//   off                                         the end of the machine
// It says "@ ready" first. Linked statically, and nothing but the kernel lies below it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { kMaxWords = 40 };

static void run(char** words) {
  pid_t child = fork();
  if (child == 0) {
    while (*words != NULL && strchr(*words, '=') != NULL) putenv(*words++);
    if (*words != NULL) execv(*words, words);
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  printf("\n@ %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void put(const char* path, const char* text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  int error = file < 0 || write(file, text, strlen(text)) < 0 ? errno : 0;
  if (file >= 0) close(file);
  printf("@ %d\n", error);
}

static void get(const char* path) {
  char text[400];
  FILE* file = fopen(path, "re");
  if (file != NULL && fgets(text, sizeof text, file) != NULL) printf("%s\n", strtok(text, "\n"));
  printf("@ %d\n", file != NULL ? 0 : errno);
  if (file != NULL) fclose(file);
}

static void serve(const char* line_path) {
  int line = open(line_path, O_RDWR);
  if (line < 0) return;
  struct termios raw;
  tcgetattr(line, &raw);
  cfmakeraw(&raw);
  tcsetattr(line, TCSANOW, &raw);
  for (int i = 0; i < 3; ++i) dup2(line, i);
  close(line);
  // What a program does not read is no command.
  setvbuf(stdin, NULL, _IONBF, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("@ ready");
  char text[4000];
  while (fgets(text, sizeof text, stdin) != NULL) {
    char* words[kMaxWords + 1] = {0};
    int count = 0;
    for (char* word = strtok(text, "\t\n"); word != NULL && count < kMaxWords; word = strtok(NULL, "\t\n"))
      words[count++] = word;
    if (count >= 2 && strcmp(words[0], "run") == 0) run(words + 1);
    if (count == 3 && strcmp(words[0], "put") == 0) put(words[1], words[2]);
    if (count == 2 && strcmp(words[0], "get") == 0) get(words[1]);
    if (count == 1 && strcmp(words[0], "off") == 0) reboot(RB_POWER_OFF);
  }
}

int main(void) {
  static const char* const folders[] = {"/proc", "/sys", "/dev", "/tmp", "/var", "/var/tmp"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) mkdir(folders[i], 0777);
  mount("proc", "/proc", "proc", 0, NULL);
  mount("sysfs", "/sys", "sysfs", 0, NULL);
  mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  mount("tmpfs", "/var/tmp", "tmpfs", 0, NULL);
  setenv("PATH", "/bin", 1);
  struct rlimit files = {4096, 4096};
  setrlimit(RLIMIT_NOFILE, &files);
  if (fork() == 0) serve("/dev/ttyS2");
  serve("/dev/ttyS1");
  for (;;) pause();
}
