#include "engine/engine.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/agreement.hpp"
#include "base/binding.hpp"
#include "engine/distributed/distributed_engine.hpp"
#include "engine/distributed/fastest_transport.hpp"
#include "problem/names.hpp"

namespace solenoid {
namespace {

std::unique_ptr<distributed::Transport> make_transport(Engine& engine, const std::shared_ptr<const Communicator>& ranks,
                                                       TransportChoice choice) {
  const bool alone = ranks->all(cuda_devices() >= ranks->ranks_on_host());
  if (choice == TransportChoice::automatic) {
    if (!alone) {
      throw InputError(fmt::format(
          "{} ranks on a host with {} GPUs: start at most one for each, or let them share by transport \"{}\"",
          ranks->ranks_on_host(), cuda_devices(), name_of(TransportChoice::staged)));
    }
    return distributed::fastest_transport(engine, ranks);
  }
  if (choice == TransportChoice::staged) return distributed::make_staged_transport(engine, ranks);
  if (!alone) throw InputError(fmt::format("transport \"{}\" needs a GPU for each rank", name_of(choice)));
  if (choice == TransportChoice::nccl) return distributed::make_nccl_transport(engine, ranks);
  const std::string why = distributed::peer_unavailable(*ranks);
  if (!why.empty()) throw InputError(fmt::format("transport \"peer\" does not work here: {}", why));
  return distributed::make_peer_transport(engine, ranks);
}

}  // namespace

std::unique_ptr<Engine> make_engine(DeviceChoice device, int threads, const std::shared_ptr<const Communicator>& ranks,
                                    TransportChoice transport) {
  const bool alone = ranks == nullptr || ranks->size() == 1;
  if (!alone && device != DeviceChoice::cpu && cuda_devices() > 0) {
    use_cuda_device(ranks->rank_on_host() % cuda_devices());
  }
  bool cuda = device == DeviceChoice::cuda;
  if (device == DeviceChoice::automatic) {
    cuda = cuda_unavailable().empty();
    if (!alone) cuda = ranks->all(cuda);
  }
  if (alone) return cuda ? make_cuda_engine() : make_cpu_engine(threads);
  if (!cuda && threads == 0) threads = share_of_cores(*ranks);
  std::unique_ptr<Engine> engine;
  in_agreement(ranks.get(), [&] { engine = cuda ? make_cuda_engine() : make_cpu_engine(threads); });
  if (!cuda && transport != TransportChoice::automatic) {
    throw InputError(
        fmt::format("transport \"{}\" is between GPUs, but the ranks have processors", name_of(transport)));
  }
  auto messages = cuda ? make_transport(*engine, ranks, transport) : distributed::make_host_transport(ranks);
  return make_distributed_engine(std::move(engine), std::move(messages), ranks);
}

}  // namespace solenoid
