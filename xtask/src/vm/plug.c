/* A plug between RTS and CTS of an emulated serial port: QEMU asks the device behind the port for
 * its modem lines, and a pseudo-terminal has none. Loaded into QEMU before libc. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int ioctl(int descriptor, unsigned long request, ...)
{
	static int outputs;
	va_list rest;

	va_start(rest, request);
	void *argument = va_arg(rest, void *);
	va_end(rest);
	switch (request) {
	case TIOCMSET:
		outputs = *(int *)argument & (TIOCM_RTS | TIOCM_DTR);
		return 0;
	case TIOCMGET:
		*(int *)argument = outputs | (outputs & TIOCM_RTS ? TIOCM_CTS : 0);
		return 0;
	default:
		return syscall(SYS_ioctl, descriptor, request, argument);
	}
}
