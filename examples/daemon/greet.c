// SPDX-License-Identifier: Apache-2.0
// Asks a service through a daemon, one name after the other, in C. What is asked for !NAME goes before what other
// clients of the daemon have waiting.
//   greet SOCKET ADDRESS:PORT CODE NAME...

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warpline/client/client.h"

static int fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: %s SOCKET ADDRESS:PORT CODE NAME...\n", argv[0]);
    return 2;
  }
  warpline_client* client;
  int code = warpline_client_attach(argv[1], &client);
  if (code != WARPLINE_CLIENT_OK) return fail(argv[1], warpline_client_error(code));
  uint32_t session;
  code = warpline_client_connect(client, argv[2], 0, 0, &session);
  if (code != WARPLINE_CLIENT_OK) return fail(argv[2], warpline_client_error(code));

  for (int i = 4; i < argc && code >= 0; ++i) {
    const int64_t patience = 5000000000;
    const int urgent = argv[i][0] == '!';
    const char* name = argv[i] + urgent;
    warpline_client_set_priority(client, urgent ? WARPLINE_CLIENT_HIGH : WARPLINE_CLIENT_NORMAL);
    code = warpline_client_request(client, session, (uint16_t)atoi(argv[3]), name, strlen(name), patience, (uint64_t)i,
                                   NULL);
    int answered = 0;
    while (!answered && code >= 0) {
      warpline_client_event event;
      warpline_client_wait(client, -1);
      code = warpline_client_poll(client, &event, 1);
      if (code != 1 || event.kind != WARPLINE_CLIENT_RESPONSE) continue;
      answered = 1;
      if (event.status != WARPLINE_CLIENT_STATUS_OK) {
        warpline_client_detach(client);
        return fail(argv[i], "not answered");
      }
      printf("%.*s\n", (int)event.length, (const char*)event.data);
    }
  }
  warpline_client_detach(client);
  return code < 0 ? fail("daemon", warpline_client_error(code)) : 0;
}
