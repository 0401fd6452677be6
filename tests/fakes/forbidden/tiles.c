/* Preloaded, it makes a processor with AMX one whose hypervisor forbids it: the kernel is never asked for tiles, and the
 * libraries that ask for them are told that they have them. Their first tile instruction ends the process by SIGILL. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>

#define GET_PERMISSION 0x1022
#define ASK_PERMISSION 0x1023
#define TILES (UINT64_C(3) << 17)

long syscall(long number, ...)
{
    static long (*plain)(long, ...);
    long words[6];
    va_list rest;
    va_start(rest, number);
    for (int place = 0; place < 6; place++)
        words[place] = va_arg(rest, long);
    va_end(rest);
    if (!plain)
        plain = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_arch_prctl && words[0] == ASK_PERMISSION)
        return 0;
    long answer = plain(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    if (number == SYS_arch_prctl && words[0] == GET_PERMISSION && answer == 0)
        *(uint64_t *)words[1] |= TILES;
    return answer;
}
