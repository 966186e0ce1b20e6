// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages through `warpline message daemon`, for C and whatever calls C: a client shares memory with the daemon, which
// has the port. docs/message_daemon.md says how the two talk.
//
// A client belongs to one thread at a time, which makes all calls, and to the process that attached it: after fork() a
// child attaches a client of its own, and the daemon drops a client when its process ends. Calls that do something
// return WARPLINE_CLIENT_OK or one of the negative codes below; none of them blocks but attach and wait.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Codes that calls return.
enum {
  WARPLINE_CLIENT_OK = 0,            ///< done, or under way
  WARPLINE_CLIENT_AGAIN = -1,        ///< all places are taken: poll, and try again after an event
  WARPLINE_CLIENT_GONE = -2,         ///< the daemon has ended, and all events were read: detach
  WARPLINE_CLIENT_BAD = -3,          ///< an argument makes no sense: no such session, call or request, no such address
  WARPLINE_CLIENT_TOO_LONG = -4,     ///< longer than warpline_client_limits.message_bytes
  WARPLINE_CLIENT_NOBODY = -5,       ///< attach: nobody listens there
  WARPLINE_CLIENT_NOT_ALLOWED = -6,  ///< attach: this user may not
  WARPLINE_CLIENT_FULL = -7,         ///< attach: the daemon takes no more clients now
  WARPLINE_CLIENT_VERSION = -8,      ///< attach: whoever listens there speaks another version, or is no daemon
  WARPLINE_CLIENT_SYSTEM = -9,       ///< attach: the system refused something; errno says what
  WARPLINE_CLIENT_EXPELLED = -10     ///< the daemon found what this library does not write: detach
};

/// Kinds of events.
enum {
  WARPLINE_CLIENT_CONNECTED = 1,  ///< the peer has taken the session
  WARPLINE_CLIENT_LOST = 2,       ///< the session ended, `reason` says why, or could not be opened; its number is free
  WARPLINE_CLIENT_RESPONSE = 3,   ///< the end of a request
  WARPLINE_CLIENT_SENT = 4,       ///< the end of a one-way message
  WARPLINE_CLIENT_REQUEST = 5,    ///< of a peer: answer or decline it, once
  WARPLINE_CLIENT_MESSAGE = 6,    ///< of a peer, one-way
  WARPLINE_CLIENT_WITHDRAWN = 7,  ///< the peer has given the request `id` up; it is to be answered or declined still
  WARPLINE_CLIENT_LISTENING = 8   ///< the end of warpline_client_listen
};

/// How a request or one-way message ended. Of LISTENING only OK and IN_USE, of LOST only OK and NO_MEMORY.
enum {
  WARPLINE_CLIENT_STATUS_OK = 0,
  WARPLINE_CLIENT_STATUS_REFUSED = 1,     ///< the peer could not take it; `code` says why
  WARPLINE_CLIENT_STATUS_TOO_LONG = 2,    ///< the response is longer than may be; `length` says how long
  WARPLINE_CLIENT_STATUS_DEADLINE = 3,    ///< its time was over first
  WARPLINE_CLIENT_STATUS_CANCELLED = 4,   ///< by warpline_client_cancel
  WARPLINE_CLIENT_STATUS_PEER_LOST = 5,   ///< the session ended
  WARPLINE_CLIENT_STATUS_NO_MEMORY = 6,   ///< the daemon had no room for it: try again later
  WARPLINE_CLIENT_STATUS_GOING_AWAY = 7,  ///< the peer takes nothing new: ask another one
  WARPLINE_CLIENT_STATUS_IN_USE = 8       ///< another client listens for one of the codes
};

/// How far a request or one-way message came that did not end as OK. Up to NOT_HANDLED it may be sent once more.
enum {
  WARPLINE_CLIENT_REACH_NEVER_SENT = 0,
  WARPLINE_CLIENT_REACH_NOT_HANDLED = 1,
  WARPLINE_CLIENT_REACH_MAYBE_HANDLED = 2,
  WARPLINE_CLIENT_REACH_HANDLED = 3
};

/// One process's place at a daemon.
typedef struct warpline_client warpline_client;

/// What goes first of what the daemon has to send, for all its clients.
enum {
  WARPLINE_CLIENT_NORMAL = 0,  ///< in turns, behind what is high
  WARPLINE_CLIENT_HIGH = 1     ///< before what is normal; of eight turns one is left to that
};

// NOLINTBEGIN(readability-identifier-naming): as C names them
/// What the daemon grants each client.
typedef struct warpline_client_limits {
  uint32_t calls;          ///< requests and one-way messages under way, and responses not yet given back
  uint32_t requests;       ///< of peers, not yet answered; more wait in the daemon
  uint32_t sessions;       ///< open at once
  uint32_t message_bytes;  ///< of the longest message, either way
} warpline_client_limits;

/// What poll tells.
typedef struct warpline_client_event {
  uint32_t kind;        ///< says which of the others mean anything
  uint32_t status;      ///< of RESPONSE, SENT, LISTENING, LOST
  uint32_t reach;       ///< of RESPONSE and SENT
  uint32_t reason;      ///< of LOST: a number that warpline_client_reason names
  uint32_t session;     ///< of CONNECTED, LOST, RESPONSE, SENT: as connect gave it
  uint32_t length;      ///< bytes at `data`
  uint64_t id;          ///< of RESPONSE and SENT the call, of REQUEST and WITHDRAWN the request
  uint64_t tag;         ///< as given with what ended
  const void* data;     ///< of RESPONSE and MESSAGE valid until the next poll, of REQUEST until it is answered
  int64_t time_left;    ///< of REQUEST: nanoseconds until its sender gives it up; 0: as long as it takes
  uint16_t code;        ///< the peer's application's: what is asked, or how it went; or why a request was REFUSED
  uint16_t port;        ///< of REQUEST and MESSAGE: the peer's
  uint8_t address[16];  ///< of REQUEST and MESSAGE: the peer's, IPv6 or IPv4-mapped
} warpline_client_event;
// NOLINTEND(readability-identifier-naming)

/// Attaches to the daemon that listens at `path`. With OK `*client` is to be detached at the end.
int warpline_client_attach(const char* path, warpline_client** client);
/// Ends everything: sessions are closed, requests that were not answered are declined. Null is allowed.
void warpline_client_detach(warpline_client* client);

/// What the daemon grants.
warpline_client_limits warpline_client_get_limits(const warpline_client* client);

/// Opens a session with a peer, "192.0.2.1:24240", "[2001:db8::1]:24240" or "[fe80::1%eth0]:24240"; its number is
/// written to `session`. It may be used at once. `ordered` not 0: the peer hands messages out in the order of sending.
/// Ends with the event LOST; the number is then given anew.
int warpline_client_connect(warpline_client* client, const char* peer, int ordered, uint64_t tag, uint32_t* session);
/// Ends a session; its requests end as PEER_LOST, and then it is LOST.
int warpline_client_close(warpline_client* client, uint32_t session);

/// Asks a peer; ends with the event RESPONSE. The bytes are copied. `patience` in nanoseconds, 0: as long as it takes.
/// The call's id is written to `call`, which may be null.
int warpline_client_request(warpline_client* client, uint32_t session, uint16_t code, const void* data, size_t length,
                            int64_t patience, uint64_t tag, uint64_t* call);
/// Sends one way; ends with the event SENT, when the peer has all of it.
int warpline_client_send(warpline_client* client, uint32_t session, uint16_t code, const void* data, size_t length,
                         uint64_t tag, uint64_t* call);
/// The priority of requests, with their responses, and one-way messages that begin from now on; at first NORMAL. On
/// ordered sessions all are NORMAL. BAD: no such priority, and nothing has changed.
int warpline_client_set_priority(warpline_client* client, int priority);
/// Ends a request or one-way message early. One that has ended is none: BAD.
int warpline_client_cancel(warpline_client* client, uint64_t call);

/// Takes requests and messages of peers that have one of `codes` codes from `first` on; the event LISTENING says
/// whether. Those of nobody are declined by the daemon.
int warpline_client_listen(warpline_client* client, uint16_t first, uint32_t codes, uint64_t tag);
/// Answers a request, once. The bytes are copied.
int warpline_client_answer(warpline_client* client, uint64_t request, uint16_t code, const void* data, size_t length);
/// Gives a request back unanswered: the peer hears that it was declined.
int warpline_client_decline(warpline_client* client, uint64_t request);

/// Fills `events` from the front; returns how many, or GONE or EXPELLED. Gives back the bytes of responses and messages
/// that the poll before has handed out.
int warpline_client_poll(warpline_client* client, warpline_client_event* events, size_t most);
/// Sleeps until there is something to poll, 1, be it no more than bytes of the poll before to give back, or for
/// `timeout` nanoseconds, 0; less than 0: as long as it takes. 0 also if a signal's handler has run.
int warpline_client_wait(warpline_client* client, int64_t timeout);

/// For loops of one's own: readable when there is something to poll, once warpline_client_arm said 1. The client's.
int warpline_client_descriptor(const warpline_client* client);
/// To be called before each sleep on the descriptor: 1 if it may begin, 0 if there is something to poll.
int warpline_client_arm(warpline_client* client);

/// Names a code that a call returned, "all places are taken"; never null.
const char* warpline_client_error(int code);
/// Names the reason of a LOST, "silent"; never null.
const char* warpline_client_reason(uint32_t reason);

#ifdef __cplusplus
}
#endif
