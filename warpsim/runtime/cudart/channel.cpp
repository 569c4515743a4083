#include "channel.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace warpsim {
namespace {

constexpr size_t kPosted = 1 << 16;
constexpr int kFrames = 32, kRefused = 6;

thread_local uint64_t named_site = 0;  // one more than its index; 0: the machine's stack tells
int connection = -1;
pid_t owner = 0;  // a child of fork() has the socket, and may not use it
std::string& posted = *new std::string;  // not destroyed: the end of the program posts too

void write_all(const char* data, size_t size) {
  while (size) {
    const ssize_t done = send(connection, data, size, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) give_up("the emulator has ended; its own message says why.");
    data += done, size -= done;
  }
}

void read_all(char* data, size_t size) {
  while (size) {
    const ssize_t done = recv(connection, data, size, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) give_up("the emulator has ended; its own message says why.");
    data += done, size -= done;
  }
}

void append(std::string& to, const Message& message) {
  const uint32_t head[] = {static_cast<uint32_t>(message.kind()),
                           static_cast<uint32_t>(message.content().size())};
  to.append(reinterpret_cast<const char*>(head), sizeof head);
  to += message.content();
}

void flush() {
  std::string sent;
  sent.swap(posted);
  write_all(sent.data(), sent.size());
}

// A byte that carries the two files.
void hand_over(int data, int state) {
  const int files[] = {data, state};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof files)] = {};
  char byte = 'm';
  iovec vector{&byte, 1};
  msghdr header{};
  header.msg_iov = &vector, header.msg_iovlen = 1;
  header.msg_control = control, header.msg_controllen = sizeof control;
  cmsghdr* part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET, part->cmsg_type = SCM_RIGHTS, part->cmsg_len = CMSG_LEN(sizeof files);
  std::memcpy(CMSG_DATA(part), files, sizeof files);
  if (sendmsg(connection, &header, MSG_NOSIGNAL) != 1) give_up("the emulator did not answer.");
}

std::string read_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

const char* Answer::take(uint64_t size) {
  if (at_ + size > content_.size()) give_up("the emulator's answer ends too early.");
  at_ += size;
  return content_.data() + at_ - size;
}

std::map<std::string, std::string> connect(int data, int state) {
  const char* path = std::getenv("WARPSIM_SOCKET");
  if (!path) give_up("it is linked to the emulator's CUDA runtime: start it with kernelexp exec.");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  owner = getpid();
  if (::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address)) {
    give_up("the emulator did not answer: start the program with kernelexp exec.");
  }
  hand_over(data, state);
  char program[4096] = {};
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) program[0] = 0;
  Answer answer = ask(
      Message(Kind::kHello).number(owner).text(program).text(read_file("/proc/self/maps")));
  std::map<std::string, std::string> device;
  std::istringstream lines(answer.text());
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    device[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return device;
}

bool is_connected() { return connection >= 0 && owner == getpid(); }

void post(const Message& message) {
  if (!is_connected()) return;
  append(posted, message);
  if (posted.size() > kPosted) flush();
}

void send_posted() {
  if (is_connected()) flush();
}

Answer ask(const Message& message) {
  if (!is_connected()) give_up("a child of fork() can't use the CUDA context of its parent.");
  append(posted, message);
  flush();
  uint32_t size = 0;
  read_all(reinterpret_cast<char*>(&size), sizeof size);
  std::string content(size, '\0');
  read_all(content.data(), size);
  return Answer(std::move(content));
}

Frames call_site() {
  if (named_site) return {named_site};
  void* found[kFrames];
  const int count = backtrace(found, kFrames);
  Frames frames;
  for (int i = 1; i < count; ++i) frames.push_back(reinterpret_cast<uint64_t>(found[i]));
  return frames;
}

void give_up(const std::string& sentence) {
  std::fflush(nullptr);
  std::fprintf(stderr, "exec: the program was stopped: %s\n", sentence.c_str());
  static bool said = false;  // saying it may fail too
  if (!std::exchange(said, true) && is_connected()) {
    post(Message(Kind::kRefused).text(sentence));
    flush();
  }
  _exit(kRefused);
}

std::vector<std::string>& named_sites() {
  static auto& all = *new std::vector<std::string>;
  return all;
}

void name_site(const std::string& site) {
  auto& all = named_sites();
  const auto known = std::find(all.begin(), all.end(), site);
  named_site = site.empty() ? 0 : known - all.begin() + 1;
  if (named_site > all.size()) all.push_back(site);
}

}  // namespace warpsim
