/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside libftb: what its files share.
 *
 *   lib.c         clients and the calls of libftb.h      lib_publish.c   publishing, handles
 *   lib_thread.c  the one thread: sending late, receiving, callbacks, finding the broker again
 *   lib_subs.c    subscriptions and their queues
 *
 * One lock for everything, never held during a callback. A client that the thread works on is
 * `busy`; whoever wants it gone waits, or, in a callback, leaves it to the thread.
 */
#ifndef HALE_FTB_LIB_H
#define HALE_FTB_LIB_H

#include <pthread.h>
#include "base/base.h"
#include "ftb/ftb.h"
#include "ftb/kept.h"
#include "ftb/outq.h"
#include <libftb.h>

enum {
	DECLARED_MAX = 1024,
	COALESCE_NS = 450000, /* what comes sooner than this after the last packet waits until then:
			       * a broker is woken by packets, not by events */
	PATIENCE_MS = 100,    /* of a publisher whose broker is slower */
	BACKLOG = 256 << 10,  /* bytes that wait before a publisher is held up */
	WAIT_MS = 1000,	      /* for answers of the broker */
};

typedef void lib_callback(const FTB_receive_event_t *event, const void *payload, size_t length,
			  void *arg);

struct lib_event {
	struct lib_event *next;
	uint64_t ticket;
	uint32_t len;
	uint8_t bytes[];
};

struct lib_list {
	struct lib_event *head, *tail;
};

struct subscription {
	uint32_t id; /* also its handle */
	struct ftb_filter filter;
	double since;
	int (*callback)(FTB_receive_event_t *, void *);
	lib_callback *callback_long;
	void *arg;
	struct subscription *next;
};

struct declared {
	char name[FTB_MAX_EVENT_NAME];
	enum ftb_severity severity;
};

struct lib_client {
	uint32_t id; /* its handle */
	FTB_client_t info;
	unsigned style;
	int queue_len;
	char host[EVENT_TEXT_MAX + 1], start[32];
	uint64_t publisher, seq, token_base;
	struct declared *declared;
	size_t declared_count, declared_last;
	struct subscription *subs; /* newest first */
	struct {
		struct lib_list info, above; /* their order: by ticket */
		uint64_t ticket;
		int count;
	} polled; /* what waits for polling */
	/* the connection */
	int fd; /* -1: none at the moment */
	bool welcome;
	double retry_at;
	struct outq out;
	uint64_t sent_ns;  /* when a packet left last */
	uint64_t flush_ns; /* when what waits must leave; 0: nothing waits */
	uint32_t sync_sent, sync_done;
	struct ftb_kept kept;
	uint64_t lost_info, lost_above; /* by ourselves */
	uint64_t told_info, told_above; /* by brokers; the present one's so far are in addition */
	uint64_t now_info, now_above;
	bool busy, dead;
	bool orphaned;	  /* ended in its own callback: the thread frees it */
	uint32_t running; /* subscription whose callback runs */
	struct lib_client *next;
};

struct lib {
	pthread_mutex_t lock;
	pthread_cond_t news; /* an answer came, or the thread is done with something */
	struct lib_client *clients;
	uint32_t next_id;
	pthread_t thread;
	bool running, joinable;
	bool calling;	       /* the thread is in a callback, and sends nothing meanwhile */
	uint64_t sleeps_until; /* clock_ns(); 0: the thread is awake and looks before it sleeps */
	int wake;
};

extern struct lib lib;

static inline bool lib_in_thread(void)
{
	return lib.running && pthread_equal(pthread_self(), lib.thread);
}

/* All with the lock held. */

/* lib.c: called by the thread for a client that was ended in its own callback */
void lib_client_gone(struct lib_client *c);

/* lib_thread.c */
bool lib_thread_start(void);
void lib_wake(void);
int lib_open(struct lib_client *c); /* connects, greets, waits for the welcome; FTB_… */
void lib_close(struct lib_client *c);
/* Lets go what has waited long enough. */
void lib_flush_due(void);
/* Lets waiting packets go; with a broken connection the client is without one afterwards. */
void lib_flush(struct lib_client *c);
void lib_request(struct lib_client *c, enum packet_kind kind, uint32_t count, const void *body,
		 size_t len);
/* Until the broker has handled all before, for at most WAIT_MS; not in the thread. */
void lib_sync(struct lib_client *c);
struct lib_client *lib_client(FTB_client_handle_t handle); /* NULL: none */

/* lib_subs.c */
/* For `hale events`: HALE_FTB_Subscribe that also gets what brokers remember; not exported. */
int ftb_subscribe_history(FTB_subscribe_handle_t *handle, FTB_client_handle_t client,
			  const char *filter, lib_callback *callback, void *arg);
/* In a callback: how long ago its event was published, in ms; 0 if it came straight. */
extern _Thread_local uint32_t ftb_event_age_ms;
void subs_announce(struct lib_client *c, const struct subscription *s, bool again);
/* Gives an event to the first callback that wants it, else lets it wait for polling: a client gets
 * an event once, whatever it subscribed to. Releases the lock during callbacks. */
void subs_event(struct lib_client *c, const struct ftb_event *e, const uint8_t *bytes, size_t len);
void subs_free_all(struct lib_client *c);

/* lib_publish.c */
uint64_t token_base(const char *space, const char *client, const char *host, const char *start,
		    pid_t pid);
uint64_t token_of(uint64_t base, const char *name, uint16_t seqnum);

#endif
