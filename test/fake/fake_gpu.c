#include "fake/fake_gpu.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_ALLOCS 256
#define PAGE_BYTES 4096u

static struct gpu_alloc {
	char *addr; /* NULL: free */
	char *alias;
	size_t bytes;
	int fd;
	struct fake_gpu_info info;
} allocs[MAX_ALLOCS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_id;

static void must(int what)
{
	if (!what) {
		abort();
	}
}

static struct gpu_alloc *find_locked(const void *addr)
{
	const char *p = addr;

	for (int i = 0; i < MAX_ALLOCS; i++) {
		struct gpu_alloc *a = &allocs[i];

		if (a->addr != NULL && p >= a->addr && p < a->addr + a->bytes) {
			return a;
		}
	}
	return NULL;
}

void *fake_gpu_alloc(size_t bytes, int device)
{
	struct gpu_alloc *a = allocs;

	pthread_mutex_lock(&lock);
	while (a->addr != NULL) {
		a++;
		must(a != allocs + MAX_ALLOCS);
	}
	a->bytes = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
	a->fd = memfd_create("fake-dmabuf", MFD_CLOEXEC);
	must(a->fd >= 0 && ftruncate(a->fd, (off_t)a->bytes) == 0);
	a->addr = mmap(NULL, a->bytes, PROT_NONE, MAP_SHARED, a->fd, 0);
	a->alias = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			a->fd, 0);
	must(a->addr != MAP_FAILED && a->alias != MAP_FAILED);
	a->info.device = device;
	a->info.id = ++last_id;
	pthread_mutex_unlock(&lock);
	return a->addr;
}

void fake_gpu_free(void *addr)
{
	struct gpu_alloc *a;

	pthread_mutex_lock(&lock);
	a = find_locked(addr);
	must(a != NULL && a->addr == addr);
	munmap(a->addr, a->bytes);
	munmap(a->alias, a->bytes);
	close(a->fd);
	a->addr = NULL;
	pthread_mutex_unlock(&lock);
}

void *fake_gpu_alias(const void *addr)
{
	const struct gpu_alloc *a;
	void *alias = (void *)(uintptr_t)addr;

	pthread_mutex_lock(&lock);
	a = find_locked(addr);
	if (a != NULL) {
		alias = a->alias + ((const char *)addr - a->addr);
	}
	pthread_mutex_unlock(&lock);
	return alias;
}

int fake_gpu_find(const void *addr, struct fake_gpu_info *out)
{
	const struct gpu_alloc *a;

	pthread_mutex_lock(&lock);
	a = find_locked(addr);
	if (a != NULL) {
		*out = a->info;
	}
	pthread_mutex_unlock(&lock);
	return a != NULL ? 0 : -1;
}

int fake_gpu_export(const void *addr)
{
	const struct gpu_alloc *a;
	int fd = -1;

	pthread_mutex_lock(&lock);
	a = find_locked(addr);
	if (a != NULL) {
		fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

unsigned fake_gpu_live(void)
{
	unsigned live = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_ALLOCS; i++) {
		live += allocs[i].addr != NULL;
	}
	pthread_mutex_unlock(&lock);
	return live;
}
