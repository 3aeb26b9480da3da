/*
 * Mutex that knows its owner in debug builds, so that the first line of every
 * `_locked` function can assert that the lock is held.
 */
#ifndef FR_BASE_LOCK_H
#define FR_BASE_LOCK_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

struct fr_lock {
	pthread_mutex_t mutex;
#ifndef NDEBUG
	_Atomic bool held;
	pthread_t owner; /* valid while held */
#endif
};

/* Initialisers; one of the second kind knows which thread has it. */
#define FR_LOCK_INIT                                                           \
	{                                                                      \
		.mutex = PTHREAD_MUTEX_INITIALIZER                             \
	}
#define FR_LOCK_OWNED_INIT                                                     \
	{                                                                      \
		.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP               \
	}

static inline void fr_lock_init(struct fr_lock *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
#ifndef NDEBUG
	lock->held = false;
#endif
}

static inline void fr_lock_fini(struct fr_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static inline void fr_lock_took(struct fr_lock *lock)
{
#ifndef NDEBUG
	lock->owner = pthread_self();
	lock->held = true;
#else
	(void)lock;
#endif
}

static inline void fr_lock_take(struct fr_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
	fr_lock_took(lock);
}

static inline bool fr_lock_try(struct fr_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex) != 0) {
		return false;
	}
	fr_lock_took(lock);
	return true;
}

static inline void fr_lock_drop(struct fr_lock *lock)
{
#ifndef NDEBUG
	lock->held = false;
#endif
	pthread_mutex_unlock(&lock->mutex);
}

/* Of one with FR_LOCK_OWNED_INIT: whether the calling thread has it. Waits for
 * another one that does. */
static inline bool fr_lock_is_mine(struct fr_lock *lock)
{
	int ret = pthread_mutex_lock(&lock->mutex);

	if (ret == 0) {
		pthread_mutex_unlock(&lock->mutex);
	}
	return ret == EDEADLK;
}

#ifndef NDEBUG
#define fr_lock_assert(lock)                                                   \
	assert((lock)->held &&pthread_equal((lock)->owner, pthread_self()))
#else
#define fr_lock_assert(lock) ((void)(lock))
#endif

#endif
