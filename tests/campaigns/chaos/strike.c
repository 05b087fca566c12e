/* Preloaded into all processes of a run: notes what they do to its files, and lets one planned fault strike in each.

   CHAOS_ROOT    the folder of the run: only what is below its results and its .snakemake counts
   CHAOS_FOLDER  has `faults`, which is read, `trace`, which is written, and an empty file struck-<number> of each fault
                 that struck, so that none strikes twice
   CHAOS_CLOCK   "<moment> <jump>": from this moment of the monotonic clock on, the clock on the wall jumps by seconds

   A line of `faults` is: number, process, call, count, action, and of errors their number, separated by tabs. A process
   is known by the log file of its job, or is `snakemake`. It meets the first fault of its own that has not struck yet.
   Calls that a program makes of the kernel itself, past the C library, are not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

enum { NAME = 2 * PATH_MAX };
static char root[PATH_MAX], folder[PATH_MAX], process[PATH_MAX];
static pid_t owner;       /* children of a process are none of its own */
static int is_armed, number, wanted, error, broken, seen;
static char call_of_fault[16], action[16];
static double moment, jump;

/* Past our own functions. */
static void append(const char *file, const char *text) {
    char path[NAME];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor >= 0) {
        syscall(SYS_write, descriptor, text, strlen(text));
        syscall(SYS_close, descriptor);
    }
}

/* The process by its words: the log of a job, `snakemake` for the one that the user started, else nothing. */
static void find_process(void) {
    static char words[1 << 16];
    int descriptor = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    long length = syscall(SYS_read, descriptor, words, sizeof words - 1);
    syscall(SYS_close, descriptor);
    const char *module = "", *before = "";
    for (const char *word = words; word < words + length; before = word, word += strlen(word) + 1) {
        if (!*module && !strcmp(before, "-m")) module = word;
        if (!strcmp(module, "symbert") && !strcmp(before, "--log") && strlen(word) < PATH_MAX) strcpy(process, word);
    }
    if (!strcmp(module, "snakemake")) strcpy(process, "snakemake");
}

static void find_fault(void) {
    char path[NAME], line[NAME], whose[PATH_MAX];
    snprintf(path, sizeof path, "%s/faults", folder);
    FILE *file = REAL(fopen)(path, "re");
    while (file && !is_armed && fgets(line, sizeof line, file)) {
        error = 0;
        if (sscanf(line, "%d\t%[^\t]\t%15[^\t]\t%d\t%15[^\t\n]\t%d", &number, whose, call_of_fault, &wanted, action,
                   &error) < 5)
            continue;
        snprintf(path, sizeof path, "%s/struck-%d", folder, number);
        is_armed = !strcmp(whose, process) && access(path, F_OK);
    }
    if (file) fclose(file);
}

__attribute__((constructor)) static void begin(void) {
    const char *where = getenv("CHAOS_ROOT"), *notes = getenv("CHAOS_FOLDER"), *clock = getenv("CHAOS_CLOCK");
    if (!where || !notes) return;
    snprintf(root, sizeof root, "%s/", where);
    snprintf(folder, sizeof folder, "%s", notes);
    if (clock) sscanf(clock, "%lf %lf", &moment, &jump);
    owner = getpid();
    find_process();
    if (!*process) return;
    char line[NAME];
    snprintf(line, sizeof line, "%s\tstart\t%d\n", process, owner);
    append("trace", line);
    find_fault();
}

/* The whole path of a file of the run, below its root; nothing for any other. */
static const char *of_run(int directory, const char *path, char *whole) {
    if (!*root || !path) return NULL;
    if (*path == '/') {
        snprintf(whole, NAME, "%s", path);
    } else {
        char link[64];
        snprintf(link, sizeof link, directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
        long length = readlink(link, whole, PATH_MAX);
        if (length < 0) return NULL;
        snprintf(whole + length, NAME - length, *path ? "/%s" : "%s", path);
    }
    size_t length = strlen(root);
    if (strncmp(whole, root, length)) return NULL;
    const char *within = whole + length;
    return strncmp(within, "results/", 8) && strncmp(within, ".snakemake/", 11) ? NULL : within;
}

/* What a disk that is full, broken or read-only refuses from then on. */
static int refuses(const char *call) {
    if (!broken) return 0;
    int changes_names = !strcmp(call, "rename") || !strcmp(call, "unlink");
    return broken == EROFS ? strcmp(call, "write") && strcmp(call, "fsync") : !changes_names;
}

/* Note a call, and let the fault strike if it is the one; gives the error that the call ends with, 0 for none. */
static int meet(const char *call, int directory, const char *path, const char *other) {
    char whole[NAME], second[NAME], line[3 * NAME];
    int saved = errno;
    const char *name = of_run(directory, path, whole), *after = other ? of_run(AT_FDCWD, other, second) : NULL;
    errno = saved;
    if (!name) return 0;
    snprintf(line, sizeof line, "%s\t%s\t%s%s%s\n", *process ? process : "-", call, name, after ? "\t" : "",
             after ? after : "");
    append("trace", line);
    errno = saved;
    if (!is_armed || getpid() != owner) return 0;
    if (refuses(call)) return broken;
    if (strcmp(call, call_of_fault) || __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) != wanted) return 0;
    char mark[32];
    snprintf(mark, sizeof mark, "struck-%d", number);
    append(mark, line);
    if (!strcmp(action, "kill")) kill(owner, SIGKILL);
    if (!strcmp(action, "term")) kill(owner, SIGTERM);
    if (!strcmp(action, "stop")) kill(owner, SIGSTOP);
    if (!strcmp(action, "kill-group")) kill(0, SIGKILL);
    if (!strcmp(action, "term-group")) kill(0, SIGTERM);
    if (!strcmp(action, "stay")) broken = error;
    errno = saved;
    return error;
}

#define MEET(call, directory, path, other)                           \
    do {                                                             \
        int refused = meet(call, directory, path, other);            \
        if (refused) {                                               \
            errno = refused;                                         \
            return -1;                                               \
        }                                                            \
    } while (0)

#define WRITES(flags) (((flags)&O_ACCMODE) != O_RDONLY)

#define OPEN(directory, call)                                        \
    mode_t mode = 0;                                                 \
    if (flags & (O_CREAT | __O_TMPFILE)) {                           \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode = va_arg(rest, mode_t);                                 \
        va_end(rest);                                                \
    }                                                                \
    if (WRITES(flags)) MEET("open", directory, path, NULL);          \
    return call;

int openat(int directory, const char *path, int flags, ...) {
    OPEN(directory, REAL(openat)(directory, path, flags, mode))
}
int openat64(int directory, const char *path, int flags, ...) {
    OPEN(directory, REAL(openat64)(directory, path, flags, mode))
}
int open(const char *path, int flags, ...) { OPEN(AT_FDCWD, REAL(open)(path, flags, mode)) }
int open64(const char *path, int flags, ...) { OPEN(AT_FDCWD, REAL(open64)(path, flags, mode)) }

static int is_refused(const char *path, const char *mode) {
    int refused = *mode == 'r' && !strchr(mode, '+') ? 0 : meet("open", AT_FDCWD, path, NULL);
    if (refused) errno = refused;
    return refused;
}
FILE *fopen(const char *path, const char *mode) { return is_refused(path, mode) ? NULL : REAL(fopen)(path, mode); }
FILE *fopen64(const char *path, const char *mode) { return is_refused(path, mode) ? NULL : REAL(fopen64)(path, mode); }

ssize_t write(int file, const void *bytes, size_t count) {
    MEET("write", file, "", NULL);
    return REAL(write)(file, bytes, count);
}
ssize_t writev(int file, const struct iovec *pieces, int count) {
    MEET("write", file, "", NULL);
    return REAL(writev)(file, pieces, count);
}
ssize_t pwrite(int file, const void *bytes, size_t count, off_t place) {
    MEET("write", file, "", NULL);
    return REAL(pwrite)(file, bytes, count, place);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t place) {
    MEET("write", file, "", NULL);
    return REAL(pwrite64)(file, bytes, count, place);
}
int fsync(int file) {
    MEET("fsync", file, "", NULL);
    return REAL(fsync)(file);
}
int fdatasync(int file) {
    MEET("fsync", file, "", NULL);
    return REAL(fdatasync)(file);
}
int rename(const char *path, const char *other) {
    MEET("rename", AT_FDCWD, path, other);
    return REAL(rename)(path, other);
}
int renameat(int from, const char *path, int to, const char *other) {
    MEET("rename", from, path, other);
    return REAL(renameat)(from, path, to, other);
}
int unlink(const char *path) {
    MEET("unlink", AT_FDCWD, path, NULL);
    return REAL(unlink)(path);
}
int unlinkat(int directory, const char *path, int flags) {
    MEET("unlink", directory, path, NULL);
    return REAL(unlinkat)(directory, path, flags);
}
int mkdir(const char *path, mode_t mode) {
    MEET("mkdir", AT_FDCWD, path, NULL);
    return REAL(mkdir)(path, mode);
}
int mkdirat(int directory, const char *path, mode_t mode) {
    MEET("mkdir", directory, path, NULL);
    return REAL(mkdirat)(directory, path, mode);
}

static double jumped(void) {
    struct timespec now;
    if (!jump || syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now)) return 0;
    return now.tv_sec + now.tv_nsec / 1e9 >= moment ? jump : 0;
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    static __typeof__(&clock_gettime) real;
    if (!real) real = REAL(clock_gettime);
    int result = real(clock, time);
    if (jump && !result && clock == CLOCK_REALTIME) time->tv_sec += jumped();
    return result;
}
int gettimeofday(struct timeval *time, void *zone) {
    int result = REAL(gettimeofday)(time, zone);
    if (!result) time->tv_sec += jumped();
    return result;
}
time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
