#include "tools/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"

#define QUEUE_LEN 16u

struct job {
	fr_worker_fn fn;
	void *arg;
};

/* @lock guards everything behind it. */
struct fr_worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job queue[QUEUE_LEN];
	unsigned put, taken, finished; /* count up for ever */
	int result;
	bool stop;
};

static void *worker_main(void *arg)
{
	struct fr_worker *w = arg;
	struct job job;
	int ret;

	(void)pthread_mutex_lock(&w->lock);
	for (;;) {
		while (w->put == w->taken && !w->stop) {
			(void)pthread_cond_wait(&w->changed, &w->lock);
		}
		if (w->put == w->taken) {
			break;
		}
		job = w->queue[w->taken++ % QUEUE_LEN];
		(void)pthread_mutex_unlock(&w->lock);
		ret = job.fn(job.arg);
		(void)pthread_mutex_lock(&w->lock);
		w->finished++;
		if (w->result == 0) {
			w->result = ret;
		}
		(void)pthread_cond_broadcast(&w->changed);
	}
	(void)pthread_mutex_unlock(&w->lock);
	return NULL;
}

int fr_worker_start(const char *name, struct fr_worker **out)
{
	struct fr_worker *w;
	int ret;

	w = fr_calloc(1, sizeof(*w));
	if (w == NULL) {
		return -ENOMEM;
	}
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->changed, NULL);
	ret = pthread_create(&w->thread, NULL, worker_main, w);
	if (ret != 0) {
		(void)pthread_cond_destroy(&w->changed);
		(void)pthread_mutex_destroy(&w->lock);
		fr_free(w);
		return -ret;
	}
	(void)pthread_setname_np(w->thread, name);
	*out = w;
	return 0;
}

void fr_worker_stop(struct fr_worker *w)
{
	if (w == NULL) {
		return;
	}
	(void)pthread_mutex_lock(&w->lock);
	w->stop = true;
	(void)pthread_cond_broadcast(&w->changed);
	(void)pthread_mutex_unlock(&w->lock);
	(void)pthread_join(w->thread, NULL);
	(void)pthread_cond_destroy(&w->changed);
	(void)pthread_mutex_destroy(&w->lock);
	fr_free(w);
}

void fr_worker_post(struct fr_worker *w, fr_worker_fn fn, void *arg)
{
	(void)pthread_mutex_lock(&w->lock);
	while (w->put - w->taken == QUEUE_LEN) {
		(void)pthread_cond_wait(&w->changed, &w->lock);
	}
	w->queue[w->put++ % QUEUE_LEN] = (struct job){fn, arg};
	(void)pthread_cond_broadcast(&w->changed);
	(void)pthread_mutex_unlock(&w->lock);
}

int fr_worker_drain_wait(struct fr_worker *w)
{
	int ret;

	(void)pthread_mutex_lock(&w->lock);
	while (w->finished != w->put) {
		(void)pthread_cond_wait(&w->changed, &w->lock);
	}
	ret = w->result;
	w->result = 0;
	(void)pthread_mutex_unlock(&w->lock);
	return ret;
}

int fr_worker_run_wait(struct fr_worker *w, fr_worker_fn fn, void *arg)
{
	fr_worker_post(w, fn, arg);
	return fr_worker_drain_wait(w);
}
