// SPDX-License-Identifier: Apache-2.0
// libpcap's list of capture sources names one for D-Bus, whose libraries no program of the bundle needs. These stand in
// its place: it has no devices, and none is its own. Signatures: pcap-dbus.h of libpcap 1.10.
struct pcap;
struct pcap_if_list;

extern "C" {

int dbus_findalldevs(pcap_if_list* /*devices*/, char* /*error*/) { return 0; }

pcap* dbus_create(const char* /*device*/, char* /*error*/, int* is_ours) {
  *is_ours = 0;
  return nullptr;
}

}  // extern "C"
