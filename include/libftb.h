/* SPDX-License-Identifier: BSD-3-Clause */
/* The event backplane: components that notice faults publish events, components that can act
 * subscribe to them, and neither knows the other.
 *
 * The interface is that of the CIFTS Fault Tolerance Backplane, FTB 0.6 (API 0.5): the same names,
 * types, sizes and error codes, so a component written for CIFTS compiles unchanged; link with
 * -lftb. Functions that begin with HALE_FTB_ are additions of Hale. `docs/backplane.md` describes
 * the whole.
 *
 *     FTB_client_t me = {.event_space = "FTB.FTB_IPMI", .client_subscription_style =
 * "FTB_SUBSCRIPTION_NONE"}; FTB_event_info_t events[] = {{"FTB_IPMI_FANFAIL", "ERROR"}};
 *     FTB_client_handle_t client;
 *     FTB_event_handle_t event;
 *     FTB_event_properties_t p = {.event_type = HALE_FTB_EVENT_NORMAL, .event_payload = "node3"};
 *
 *     if (FTB_Connect(&me, &client) == FTB_SUCCESS &&
 *         FTB_Declare_publishable_events(client, NULL, events, 1) == FTB_SUCCESS)
 *             FTB_Publish(client, "FTB_IPMI_FANFAIL", &p, &event);
 *     FTB_Disconnect(client);
 *
 * Every function may be called from any thread at any time, also from a callback, but not from a
 * signal handler. Each returns FTB_SUCCESS or one of the codes below; none ends the process, and
 * none prints. The broker of the node is found by the socket path in $HALE_FTB, else in
 * $XDG_RUNTIME_DIR/hale/ftb, else in /tmp/hale-ftb-UID/ftb.
 *
 * When the broker ends, clients find it again by themselves: subscriptions are renewed, and events
 * of severity WARNING and above that were published meanwhile, or might have been lost with it, are
 * sent again (the newest 256 KiB); no subscriber gets one twice.
 */
#ifndef HALE_LIBFTB_H
#define HALE_LIBFTB_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. */
#define FTB_SUCCESS	0
#define FTB_ERR_GENERAL (-1) /* no memory, or no library thread could be started */
#define FTB_ERR_EVENTSPACE_FORMAT                                                                  \
	(-2) /* a namespace is words of A-Z a-z 0-9 _ - with dots between */
#define FTB_ERR_SUBSCRIPTION_STYLE  (-3) /* client_subscription_style is none of the four */
#define FTB_ERR_INVALID_VALUE	    (-4) /* client_name or client_jobid is too long */
#define FTB_ERR_DUP_CALL	    (-5) /* FTB_Connect again with the same namespace, name, … */
#define FTB_ERR_NULL_POINTER	    (-6)
#define FTB_ERR_NOT_SUPPORTED	    (-7) /* callback or poll against the client's subscription style */
#define FTB_ERR_INVALID_FIELD	    (-8)  /* name or severity of a declared event */
#define FTB_ERR_INVALID_HANDLE	    (-9)  /* never given out, or ended already */
#define FTB_ERR_DUP_EVENT	    (-10) /* declared before with another severity */
#define FTB_ERR_INVALID_SCHEMA_FILE (-11)
#define FTB_ERR_INVALID_EVENT_NAME  (-12) /* not declared by this client */
#define FTB_ERR_INVALID_EVENT_TYPE                                                                 \
	(-13) /* neither HALE_FTB_EVENT_NORMAL nor HALE_FTB_EVENT_RESPONSE */
#define FTB_ERR_SUBSCRIPTION_STR  (-14) /* not a list of key=value, or a key twice */
#define FTB_ERR_FILTER_ATTR	  (-15) /* an unknown key */
#define FTB_ERR_FILTER_VALUE	  (-16) /* a value that this key can't have */
#define FTB_GOT_NO_EVENT	  (-17) /* nothing to poll at the moment */
#define FTB_FAILURE		  (-18) /* the two handles are of different events */
#define FTB_ERR_INVALID_PARAMETER (-19) /* a payload above HALE_FTB_MAX_PAYLOAD, for instance */
#define FTB_ERR_NETWORK_GENERAL	  (-20) /* no room for the event: the broker takes nothing */
#define FTB_ERR_NETWORK_NO_ROUTE  (-21) /* no broker on this node, or not for this user */

/* client_subscription_style, as text: "FTB_SUBSCRIPTION_NONE", "…_POLLING", "…_NOTIFY" (callbacks),
 * "…_BOTH". */
#define FTB_SUBSCRIPTION_NONE	 0x0
#define FTB_SUBSCRIPTION_POLLING 0x1
#define FTB_SUBSCRIPTION_NOTIFY	 0x2

/* event_type */
#define HALE_FTB_EVENT_NORMAL 1
#define HALE_FTB_EVENT_RESPONSE                                                                    \
	2 /* by custom the payload begins with the handle of what is answered                      \
	   */

/* Sizes in bytes; those of texts with their terminating zero. */
#define FTB_DEFAULT_POLLING_Q_LEN  64
#define FTB_MAX_CLIENTSCHEMA_VER   8
#define FTB_MAX_EVENTSPACE	   64
#define FTB_MAX_CLIENT_NAME	   16
#define FTB_MAX_CLIENT_JOBID	   16
#define FTB_MAX_EVENT_NAME	   32
#define FTB_MAX_SEVERITY	   16
#define FTB_MAX_HOST_ADDR	   64
#define FTB_MAX_PID_TIME	   32
#define FTB_MAX_PAYLOAD_DATA	   368
#define FTB_MAX_SUBSCRIPTION_STYLE 32
#define FTB_EVENT_SIZE		   720
/* As the developer's guide of FTB names them. */
#define FTB_MAX_JOBID	      FTB_MAX_CLIENT_JOBID
#define FTB_MAX_HOST_NAME     FTB_MAX_HOST_ADDR
#define FTB_MAX_PID_STARTTIME FTB_MAX_PID_TIME

typedef char FTB_eventspace_t[FTB_MAX_EVENTSPACE];
typedef char FTB_client_name_t[FTB_MAX_CLIENT_NAME];
typedef char FTB_client_schema_ver_t[FTB_MAX_CLIENTSCHEMA_VER];
typedef char FTB_client_jobid_t[FTB_MAX_CLIENT_JOBID];
typedef char FTB_severity_t[FTB_MAX_SEVERITY]; /* INFO, WARNING, ERROR, FATAL; any case */
typedef char FTB_event_name_t[FTB_MAX_EVENT_NAME];
typedef char FTB_hostip_t[FTB_MAX_HOST_ADDR];
typedef char FTB_subscription_style_t[FTB_MAX_SUBSCRIPTION_STYLE];
typedef char FTB_pid_starttime_t[FTB_MAX_PID_TIME];

/* Who a client is, for its whole life. */
typedef struct FTB_client {
	FTB_client_schema_ver_t client_schema_ver; /* "0.5"; not looked at */
	FTB_eventspace_t event_space;		   /* its namespace, "FTB.MPI" for instance */
	FTB_client_name_t client_name;		   /* may be empty, as may the next */
	FTB_client_jobid_t client_jobid;
	FTB_subscription_style_t client_subscription_style;
	int client_polling_queue_len; /* events kept for polling; up to 0: the default */
} FTB_client_t;

typedef struct FTB_event_info {
	FTB_event_name_t event_name;
	FTB_severity_t severity;
} FTB_event_info_t;

typedef struct FTB_event_properties {
	uint8_t event_type;
	char event_payload[FTB_MAX_PAYLOAD_DATA];
} FTB_event_properties_t;

typedef struct FTB_location_id {
	char hostname[FTB_MAX_HOST_ADDR];
	FTB_pid_starttime_t pid_starttime;
	pid_t pid;
} FTB_location_id_t;

typedef struct FTB_receive_event_info {
	FTB_eventspace_t event_space;
	FTB_event_name_t event_name;
	FTB_severity_t severity; /* in upper case */
	FTB_client_jobid_t client_jobid;
	FTB_client_name_t client_name;
	uint8_t client_extension;
	uint16_t seqnum; /* of the publishing client; wraps */
	FTB_location_id_t incoming_src;
	uint8_t event_type;
	char event_payload[FTB_MAX_PAYLOAD_DATA]; /* zeros behind a shorter one */
} FTB_receive_event_t;

/* Opaque. An event handle means the same in every process, so it may travel in a payload. */
typedef struct FTB_client_handle *FTB_client_handle_t;
typedef struct FTB_subscribe_handle *FTB_subscribe_handle_t;
typedef struct FTB_event_handle *FTB_event_handle_t;

/* Registers with the node's broker under one namespace. Blocks for at most a second. The handle is
 * the caller's until FTB_Disconnect. A process may have several clients that differ in namespace,
 * name, job or style; DUP_CALL if there is one like this already. A child made by fork() has none.
 * NULL_POINTER, SUBSCRIPTION_STYLE, EVENTSPACE_FORMAT, INVALID_VALUE, NETWORK_NO_ROUTE, GENERAL.
 * (Seed 001, 3.2; CIFTS's developer's guide, 4.1.) */
int FTB_Connect(const FTB_client_t *client_info, FTB_client_handle_t *client_handle);

/* Names the events that a client may publish, and their severities: num_events in event_info, or,
 * if schema_file is not NULL, those in that file ("start NAMESPACE NAME SEVERITY … end", commas or
 * blanks between, # begins a comment). May be called again for more, at most 1024 in all. Declaring
 * the same again is fine. INVALID_FIELD, DUP_EVENT, INVALID_SCHEMA_FILE, INVALID_HANDLE, GENERAL.
 */
int FTB_Declare_publishable_events(FTB_client_handle_t client_handle, const char *schema_file,
				   const FTB_event_info_t *event_info, int num_events);

/* Publishes a declared event. event_properties NULL: type normal, no payload. Otherwise the payload
 * is the array's 368 bytes without the zeros at its end, whatever it holds. *event_handle names
 * the event from now on. Does not wait for anybody's receiving it; when the broker is slower than
 * the caller it waits for at most 0.1 s, after that an INFO event is refused with NETWORK_GENERAL,
 * others are kept as long as there is room. Under load, events leave together, at most
 * 0.5 ms late (from a callback: when it returns). INVALID_HANDLE, NULL_POINTER, INVALID_EVENT_NAME,
 * INVALID_EVENT_TYPE. */
int FTB_Publish(FTB_client_handle_t client_handle, const char *event_name,
		const FTB_event_properties_t *event_properties, FTB_event_handle_t *event_handle);

/* Asks for all events that match subscription_str, from now on, its own ones too. Terms key=value
 * with commas or blanks between them, all of which must hold; "" is every event. Keys:
 *   event_space (namespace)   event_name (name)   severity   host_name (host)   jobid (job)
 *   client_name (client)
 * A value is compared without regard to case; * and ? in it stand for any text and any character,
 * "all" for anything, in a namespace also for one word ("ftb.all.watchdog"). severity also takes
 * >=. callback NULL: events wait for FTB_Poll_event; else callback(event, arg) is called by the
 * library's one thread, one event after the other; what it returns is not looked at. A
 * process's callbacks all share that thread: a slow one delays the others, no other process.
 * A client gets each event once: if several of its subscriptions match, the first callback that was
 * subscribed is called; without one, the event waits to be polled by any of them.
 * Returns when the broker knows of it. SUBSCRIPTION_STR, FILTER_ATTR, FILTER_VALUE,
 * EVENTSPACE_FORMAT, NOT_SUPPORTED, INVALID_HANDLE, NULL_POINTER. */
int FTB_Subscribe(FTB_subscribe_handle_t *subscribe_handle, FTB_client_handle_t client_handle,
		  const char *subscription_str, int (*callback)(FTB_receive_event_t *, void *),
		  void *arg);

/* Ends a subscription; when it returns, the callback is not running (unless it is the caller) and
 * won't be called again. *subscribe_handle becomes NULL. INVALID_HANDLE, NULL_POINTER. */
int FTB_Unsubscribe(FTB_subscribe_handle_t *subscribe_handle);

/* The oldest waiting event that matches a subscription, or GOT_NO_EVENT; never blocks. A client's
 * subscriptions share the queue (client_polling_queue_len). NOT_SUPPORTED if it has a callback. */
int FTB_Poll_event(FTB_subscribe_handle_t subscribe_handle, FTB_receive_event_t *receive_event);

/* Ends all subscriptions, sends what is still unsent (for at most a second), and forgets the
 * client. */
int FTB_Disconnect(FTB_client_handle_t client_handle);

/* The handle that FTB_Publish gave for this event; FAILURE if it is none that was received. */
int FTB_Get_event_handle(const FTB_receive_event_t receive_event, FTB_event_handle_t *event_handle);

/* SUCCESS if both are of the same event, else FAILURE; INVALID_HANDLE if one is NULL. */
int FTB_Compare_event_handles(const FTB_event_handle_t event_handle1,
			      const FTB_event_handle_t event_handle2);

/* Divides a code into a class (0: no error, 1: the caller's mistake, 2: the machine or the network,
 * 3: nothing to deliver or not equal) and its number without the sign. Pointers may be NULL.
 * INVALID_PARAMETER for what is none of the codes. */
int FTB_Check_error_code(const int error_code, int *error_class, int *error_value);
int FTB_Check_error(const int error_code, int *error_class, int *error_value); /* the same */

/* ---- Hale's additions ---- */

#define HALE_FTB_MAX_PAYLOAD 8192

/* FTB_Publish with a payload of length bytes, up to 8 KiB, whatever they are; event_handle may be
 * NULL. INVALID_PARAMETER if it is longer. */
int HALE_FTB_Publish(FTB_client_handle_t client_handle, const char *event_name, uint8_t event_type,
		     const void *payload, size_t length, FTB_event_handle_t *event_handle);

/* FTB_Subscribe with the whole payload: event->event_payload holds its first 368 bytes. payload is
 * the library's and gone when the callback returns. */
int HALE_FTB_Subscribe(FTB_subscribe_handle_t *subscribe_handle, FTB_client_handle_t client_handle,
		       const char *subscription_str,
		       void (*callback)(const FTB_receive_event_t *event, const void *payload,
					size_t length, void *arg),
		       void *arg);

/* FTB_Poll_event with the whole payload: its first capacity bytes are copied to payload (may be
 * NULL), *length becomes its length. */
int HALE_FTB_Poll_event(FTB_subscribe_handle_t subscribe_handle, FTB_receive_event_t *receive_event,
			void *payload, size_t capacity, size_t *length);

/* How many events this client did not get because it was too slow, since FTB_Connect: of severity
 * INFO, and above. INFO ones go first, oldest first. Pointers may be NULL. */
int HALE_FTB_Lost(FTB_client_handle_t client_handle, uint64_t *info, uint64_t *above);

/* A sentence for a code; never NULL. */
const char *HALE_FTB_Error_text(int error_code);

#ifdef __cplusplus
}
#endif

#endif
