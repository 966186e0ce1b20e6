// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/capture/capture_door.h"

#include <unistd.h>

#include "warpline/capture/packet_filter.h"
#include "warpline/capture/packet_times.h"

namespace warpline::datapath {
namespace {

constexpr std::chrono::seconds kPatience{1};  ///< with who has come and says nothing

}  // namespace

Result<std::unique_ptr<CaptureDoor>> CaptureDoor::open(const std::string& path, PathTaps& taps) {
  WARPLINE_TRY(capture::AttachSocket listener, capture::AttachSocket::listen(path));
  return std::unique_ptr<CaptureDoor>(new CaptureDoor(std::move(listener), taps));
}

void CaptureDoor::poll() {
  if (guest_) look_at_guest();
  if (!visitor_) {
    if (auto socket = listener_.accept()) visitor_.emplace(Visitor{*std::move(socket), Clock::now()});
  }
  if (visitor_) look_at_visitor();
}

void CaptureDoor::look_at_guest() {
  if (!guest_->leaves) {
    const capture::AttachSocket::Received received = guest_->socket.receive();
    if (received.descriptor >= 0) close(received.descriptor);
    if (!received.ended) return;
    guest_->leaves = true;
    taps_.detach();
  }
  if (taps_.is_free()) say_farewell();
}

void CaptureDoor::say_farewell() {
  // Whoever is gone does not hear it.
  (void)guest_->socket.send(capture::to_bytes(guest_->sources.totals()));
  guest_.reset();
}

void CaptureDoor::look_at_visitor() {
  const capture::AttachSocket::Received received = visitor_->socket.receive();
  if (received.descriptor >= 0) close(received.descriptor);
  if (!received.bytes) {
    if (received.ended || Clock::now() - visitor_->since > kPatience) visitor_.reset();
    return;
  }
  capture::AttachSocket socket = std::move(visitor_->socket);
  visitor_.reset();
  answer(std::move(socket), *received.bytes);
}

const char* CaptureDoor::reason_to_refuse(const std::optional<capture::AttachRequest>& request) {
  if (!request || (request->traces && request->snaplen != sizeof(capture::PacketTimes)))
    return "it is of another version than what attaches to it";
  if (!taps_.is_free()) return "another capture or trace of it goes on";
  if (request->traces && !taps_.traces()) return "packets of l3forward and of --io gpu have no stages to be traced in";
  return nullptr;
}

void CaptureDoor::answer(capture::AttachSocket socket, const capture::AttachBytes& bytes) {
  const auto request = capture::read_request(bytes);
  if (const char* const why = reason_to_refuse(request)) {
    (void)socket.send(capture::refusal(why));
    return;
  }
  const std::uint32_t threads = taps_.sources(!request->traces && !request->dropped_only);
  const Result<capture::PacketFilter> filter = capture::PacketFilter::of_program(request->filter);
  Result<capture::CaptureSources> sources =
      filter ? capture::CaptureSources::make(threads, request->one_in, request->snaplen, *filter) : filter.error();
  if (!sources) {
    (void)socket.send(capture::refusal(sources.error().why));
    return;
  }
  guest_ = std::make_unique<Guest>(Guest{.socket = std::move(socket), .sources = *std::move(sources)});
  let_in(*request);
}

void CaptureDoor::let_in(const capture::AttachRequest& request) {
  Result<void> attached;
  if (request.traces) {
    taps_.trace(guest_->sources.all());
  } else {
    attached = taps_.attach(guest_->sources.all(), !request.dropped_only);
  }
  guest_->leaves = !attached;
  const capture::CaptureRings& rings = guest_->sources.rings();
  const capture::AttachWelcome welcome{
      .rings = rings.count(), .shape = rings.shape(), .interfaces = taps_.interfaces()};
  // If it is gone already, that is seen as with any other.
  if (attached) (void)guest_->socket.send(capture::to_bytes(welcome), rings.descriptor());
  if (!attached) (void)guest_->socket.send(capture::refusal(attached.error().why));
}

void CaptureDoor::end() {
  taps_.end();
  if (guest_) say_farewell();
  visitor_.reset();
}

}  // namespace warpline::datapath
