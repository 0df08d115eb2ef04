#include "engine/distributed/transport.hpp"

#include <numeric>
#include <utility>
#include <vector>

namespace solenoid::distributed {
namespace {

class HostTransport final : public Transport {
 public:
  explicit HostTransport(std::shared_ptr<const Communicator> communicator) : ranks_(std::move(communicator)) {}

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] bool recordable() const override { return false; }
  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    ranks_->exchange(sends, receives);
  }
  void exchange_while(std::span<const Message> sends, std::span<const Message> receives, const Work& work) override {
    ranks_->exchange(sends, receives, work);
  }
  void gather_all(const std::byte* mine, std::span<const std::size_t> bytes, std::byte* all) override {
    ranks_->gather_all({mine, bytes[ranks_->rank()]}, bytes, all);
  }
  void sum(double* numbers, int count) override { ranks_->sum(std::span(numbers, count)); }

 private:
  std::shared_ptr<const Communicator> ranks_;
};

class StagedTransport final : public Transport {
 public:
  StagedTransport(Engine& engine, std::shared_ptr<const Communicator> communicator)
      : engine_(engine), ranks_(std::move(communicator)) {}

  [[nodiscard]] std::string_view name() const override { return "staged"; }
  [[nodiscard]] bool recordable() const override { return false; }
  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    std::vector<Message> host_sends = on_host(sends, send_);
    std::vector<Message> host_receives = on_host(receives, receive_);
    for (std::size_t i = 0; i < sends.size(); ++i) engine_.download(sends[i].data, host_sends[i].data, sends[i].bytes);
    ranks_->exchange(host_sends, host_receives);
    for (std::size_t i = 0; i < receives.size(); ++i) {
      engine_.upload(host_receives[i].data, receives[i].data, receives[i].bytes);
    }
  }
  void gather_all(const std::byte* mine, std::span<const std::size_t> bytes, std::byte* all) override {
    send_.resize(bytes[ranks_->rank()]);
    receive_.resize(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}));
    engine_.download(mine, send_.data(), send_.size());
    ranks_->gather_all(send_, bytes, receive_.data());
    engine_.upload(receive_.data(), all, receive_.size());
  }
  void sum(double* numbers, int count) override {
    std::vector<double> host(count);
    engine_.download(numbers, host.data(), count * sizeof(double));
    ranks_->sum(std::span(host));
    engine_.upload(host.data(), numbers, count * sizeof(double));
  }

 private:
  static std::vector<Message> on_host(std::span<const Message> messages, std::vector<std::byte>& memory) {
    std::size_t bytes = 0;
    for (const Message& message : messages) bytes += message.bytes;
    memory.resize(bytes);
    std::vector<Message> result(messages.begin(), messages.end());
    std::byte* next = memory.data();
    for (Message& message : result) {
      message.data = next;
      next += message.bytes;
    }
    return result;
  }

  Engine& engine_;
  std::shared_ptr<const Communicator> ranks_;
  std::vector<std::byte> send_;
  std::vector<std::byte> receive_;
};

}  // namespace

std::unique_ptr<Transport> make_host_transport(std::shared_ptr<const Communicator> communicator) {
  return std::make_unique<HostTransport>(std::move(communicator));
}
std::unique_ptr<Transport> make_staged_transport(Engine& engine, std::shared_ptr<const Communicator> communicator) {
  return std::make_unique<StagedTransport>(engine, std::move(communicator));
}

}  // namespace solenoid::distributed
