#include "load/slow_readers.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <thread>
#include <vector>

namespace vitrine::load {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using IoError = boost::system::error_code;
constexpr int kReceiveBuffer = 4096;

class Reader {
 public:
  Reader(asio::io_context& io, const tcp::endpoint& endpoint, std::string request)
      : socket_(io), timer_(io), request_(std::move(request)) {
    IoError error;
    socket_.open(endpoint.protocol(), error);
    socket_.set_option(asio::socket_base::receive_buffer_size(kReceiveBuffer), error);
    socket_.async_connect(endpoint, [this](IoError failed) {
      if (failed) return;
      asio::async_write(socket_, asio::buffer(request_), [this](IoError e, std::size_t) {
        if (!e) wait();
      });
    });
  }

 private:
  void wait() {
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](IoError cancelled) {
      if (cancelled) return;
      socket_.async_read_some(asio::buffer(&byte_, 1), [this](IoError error, std::size_t) {
        if (!error) wait();
      });
    });
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  std::string request_;
  char byte_ = 0;
};

}  // namespace

struct SlowReaders::Impl {
  asio::io_context io{1};
  std::vector<std::unique_ptr<Reader>> readers;
  std::thread thread;
};

SlowReaders::SlowReaders(const Target& target, const LoadSpec& spec, int count, int tokens)
    : impl_(std::make_unique<Impl>()) {
  IoError error;
  auto found = tcp::resolver(impl_->io).resolve(target.host, std::to_string(target.port), error);
  if (error || found.empty()) return;
  for (int i = 0; i < count; ++i) {
    PlannedRequest planned = plan_request(spec, -1000 - i);
    planned.output_tokens = tokens;
    planned.logprobs = 20;
    impl_->readers.push_back(std::make_unique<Reader>(impl_->io, found.begin()->endpoint(),
                                                      completion_request(target, planned)));
  }
  impl_->thread = std::thread([this] { impl_->io.run(); });
}

SlowReaders::~SlowReaders() {
  impl_->io.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace vitrine::load
