// SPDX-License-Identifier: Apache-2.0
#include "vnic/device/flow_ops.h"

#include <ethdev_driver.h>

#include <cerrno>
#include <memory>
#include <new>

#include "vnic/device/device.h"

namespace warpline::vnic {
namespace {

FlowRule* rule_of(rte_flow* flow) { return reinterpret_cast<FlowRule*>(flow); }

int validate(rte_eth_dev* dev, const rte_flow_attr* attr, const rte_flow_item pattern[],
             const rte_flow_action actions[], rte_flow_error* error) {
  FlowRule rule;
  return translate(attr, pattern, actions, dev->data->nb_rx_queues, rule, error);
}

rte_flow* create(rte_eth_dev* dev, const rte_flow_attr* attr, const rte_flow_item pattern[],
                 const rte_flow_action actions[], rte_flow_error* error) {
  try {
    if (device_of(dev).args.persona->flow_rules == FlowRuleTimes::while_started && dev->data->dev_started == 0) {
      rte_flow_error_set(error, ENODEV, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, "the port is not started");
      return nullptr;
    }
    auto rule = std::make_unique<FlowRule>();
    if (translate(attr, pattern, actions, dev->data->nb_rx_queues, *rule, error) != 0) return nullptr;
    Ingress& ingress = device_of(dev).ingress;
    const Ingress::Change change(ingress);
    return reinterpret_cast<rte_flow*>(ingress.flows.add(std::move(rule)));
  } catch (const std::bad_alloc&) {
    rte_flow_error_set(error, ENOMEM, RTE_FLOW_ERROR_TYPE_HANDLE, nullptr, "no memory for a rule");
    return nullptr;
  }
}

int no_such_rule(rte_flow* flow, rte_flow_error* error) {
  return rte_flow_error_set(error, ENOENT, RTE_FLOW_ERROR_TYPE_HANDLE, flow, "no such rule");
}

int destroy(rte_eth_dev* dev, rte_flow* flow, rte_flow_error* error) {
  Ingress& ingress = device_of(dev).ingress;
  const Ingress::Change change(ingress);
  return ingress.flows.remove(rule_of(flow)) ? 0 : no_such_rule(flow, error);
}

int flush(rte_eth_dev* dev, rte_flow_error*) {
  Ingress& ingress = device_of(dev).ingress;
  const Ingress::Change change(ingress);
  ingress.flows.clear();
  return 0;
}

int query(rte_eth_dev* dev, rte_flow* flow, const rte_flow_action* action, void* data, rte_flow_error* error) {
  Ingress& ingress = device_of(dev).ingress;
  const Ingress::Change change(ingress);
  if (!ingress.flows.contains(rule_of(flow))) return no_such_rule(flow, error);
  FlowRule& rule = *rule_of(flow);
  if (action == nullptr || data == nullptr || action->type != RTE_FLOW_ACTION_TYPE_COUNT || !rule.action.counts) {
    return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, action,
                              "asked can be for count, of rules with it");
  }
  auto& answer = *static_cast<rte_flow_query_count*>(data);
  answer.hits_set = 1;
  answer.bytes_set = 1;
  answer.hits = rule.hits.load(std::memory_order_relaxed);
  answer.bytes = rule.bytes.load(std::memory_order_relaxed);
  if (answer.reset != 0) {
    rule.hits.store(0, std::memory_order_relaxed);
    rule.bytes.store(0, std::memory_order_relaxed);
  }
  return 0;
}

rte_flow_ops flow_ops() {
  rte_flow_ops ops{};
  ops.validate = validate;
  ops.create = create;
  ops.destroy = destroy;
  ops.flush = flush;
  ops.query = query;
  return ops;
}

}  // namespace

const rte_flow_ops kFlowOps = flow_ops();

}  // namespace warpline::vnic
