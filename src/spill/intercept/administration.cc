// System calls for the administration of a machine, its accounts and its network, and files about them: paths, names and
// small structures are copied when they are spilled.
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <mntent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <resolv.h>
#include <shadow.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/swap.h>
#include <unistd.h>
#include <utmp.h>
#include <utmpx.h>

#include "spill/intercept/call.h"

// Without a header in the C library's packages.
extern "C" {
int capget(cap_user_header_t header, cap_user_data_t data);
int capset(cap_user_header_t header, cap_user_data_t data);
int pivot_root(const char* root, const char* old);
int delete_module(const char* name, unsigned flags);
// Its header does not say that it is C.
int pidfd_send_signal(int process, int number, siginfo_t* info, unsigned flags);
}

// Capabilities: one set of data in the first version, two since then.
static int with_capabilities(cap_user_header_t header, cap_user_data_t data, auto call) {
  PlainObject<__user_cap_header_struct> plain_header(header);
  if (header == nullptr || data == nullptr) return call(plain_header, data);
  const size_t sets = plain_header->version == _LINUX_CAPABILITY_VERSION_1 ? 1 : 2;
  PlainBytes plain_data(data, sets * sizeof *data, PlainBytes::kInOut);
  return call(plain_header, reinterpret_cast<cap_user_data_t>(plain_data.data()));
}
SPILL_EXPORT int __spill_capget(cap_user_header_t header, cap_user_data_t data) {
  return with_capabilities(header, data, [](cap_user_header_t h, cap_user_data_t d) { return capget(h, d); });
}
SPILL_EXPORT int __spill_capset(cap_user_header_t header, cap_user_data_t data) {
  return with_capabilities(header, data, [](cap_user_header_t h, cap_user_data_t d) { return capset(h, d); });
}

// File systems and swap.
SPILL_WAIT(int, acct, (const char* path), (PlainString(path)))
SPILL_WAIT(int, pivot_root, (const char* root, const char* old), (PlainString(root), PlainString(old)))
SPILL_WAIT(int, delete_module, (const char* name, unsigned flags), (PlainString(name), flags))
SPILL_WAIT(int, swapon, (const char* path, int flags), (PlainString(path), flags))
SPILL_WAIT(int, swapoff, (const char* path), (PlainString(path)))
SPILL_WAIT(int, fsopen, (const char* name, unsigned flags), (PlainString(name), flags))
SPILL_WAIT(int, fspick, (int folder, const char* path, unsigned flags), (folder, PlainString(path), flags))
SPILL_WAIT(int, open_tree, (int folder, const char* path, unsigned flags), (folder, PlainString(path), flags))
SPILL_WAIT(int, move_mount,
           (int from_folder, const char* from, int to_folder, const char* to, unsigned flags),
           (from_folder, PlainString(from), to_folder, PlainString(to), flags))
SPILL_WAIT(int, mount_setattr,
           (int folder, const char* path, unsigned flags, mount_attr* attributes, size_t n),
           (folder, PlainString(path), flags,
            reinterpret_cast<mount_attr*>(PlainBytes(attributes, n, PlainBytes::kIn).data()), n))
SPILL_EXPORT int __spill_fsconfig(int context, unsigned command, const char* key, const void* value,
                                  int extra) {
  const PlainString plain_key(key);
  const auto* text = static_cast<const char*>(value);
  if (command != FSCONFIG_SET_BINARY)
    return fsconfig(context, command, plain_key, static_cast<const char*>(PlainString(text)), extra);
  return fsconfig(context, command, plain_key,
                  PlainBytes(value, extra > 0 ? static_cast<size_t>(extra) : 0, PlainBytes::kIn).data(),
                  extra);
}
// The other commands are XFS's, with structures of its own.
SPILL_EXPORT int __spill_quotactl(int command, const char* device, int id, caddr_t address) {
  const PlainString plain_device(device);
  switch (static_cast<unsigned>(command) >> SUBCMDSHIFT) {
    case static_cast<unsigned>(Q_QUOTAON):
      return quotactl(command, plain_device, id,
                      const_cast<caddr_t>(static_cast<const char*>(PlainString(address))));
    case static_cast<unsigned>(Q_GETQUOTA):
    case static_cast<unsigned>(Q_SETQUOTA):
      return quotactl(command, plain_device, id,
                      PlainBytes(address, sizeof(dqblk), PlainBytes::kInOut).data());
    case static_cast<unsigned>(Q_GETINFO):
    case static_cast<unsigned>(Q_SETINFO):
      return quotactl(command, plain_device, id,
                      PlainBytes(address, sizeof(dqinfo), PlainBytes::kInOut).data());
    case static_cast<unsigned>(Q_GETFMT):
      return quotactl(command, plain_device, id,
                      PlainBytes(address, sizeof(uint32_t), PlainBytes::kInOut).data());
    default: return quotactl(command, plain_device, id, address);
  }
}

// File handles, which contain their length.
static size_t handle_bytes(const file_handle* handle) {
  return handle == nullptr ? 0 : sizeof *handle + spill::load(&handle->handle_bytes);
}
SPILL_EXPORT int __spill_name_to_handle_at(int folder, const char* path, file_handle* handle, int* mount,
                                           int flags) {
  const PlainString plain_path(path);
  PlainBytes plain_handle(handle, handle_bytes(handle), PlainBytes::kInOut);
  return name_to_handle_at(folder, plain_path, reinterpret_cast<file_handle*>(plain_handle.data()),
                           PlainObject<int>(mount), flags);
}
SPILL_WAIT(int, open_by_handle_at, (int mount, file_handle* handle, int flags),
           (mount,
            reinterpret_cast<file_handle*>(PlainBytes(handle, handle_bytes(handle), PlainBytes::kIn).data()),
            flags))

// Events of files and processes, and the kernel's messages.
SPILL_WAIT(int, fanotify_mark, (int group, unsigned flags, uint64_t mask, int folder, const char* path),
           (group, flags, mask, folder, PlainString(path)))
SPILL_WAIT(int, pidfd_send_signal, (int process, int number, siginfo_t* info, unsigned flags),
           (process, number, PlainObject<siginfo_t>(info), flags))
SPILL_EXPORT int __spill_klogctl(int action, char* to, int n) {
  PlainBytes text(to, n > 0 ? static_cast<size_t>(n) : 0, PlainBytes::kInOut);
  spill::clear_slots();
  return klogctl(action, text.data(), n);
}

// Who is logged in.
SPILL_WAIT(void, updwtmp, (const char* path, const utmp* entry), (PlainString(path), PlainIn<utmp>(entry)))
SPILL_WAIT(void, updwtmpx, (const char* path, const utmpx* entry), (PlainString(path), PlainIn<utmpx>(entry)))
// The C library returns its argument.
SPILL_EXPORT utmp* __spill_pututline(const utmp* entry) {
  const PlainIn<utmp> plain_entry(entry);
  utmp* written = pututline(plain_entry);
  return written == plain_entry ? const_cast<utmp*>(entry) : written;
}
SPILL_EXPORT utmpx* __spill_pututxline(const utmpx* entry) {
  const PlainIn<utmpx> plain_entry(entry);
  utmpx* written = pututxline(plain_entry);
  return written == plain_entry ? const_cast<utmpx*>(entry) : written;
}

// Lines of files of accounts and file systems. The C library's own printing would hand what does not fit a stream's buffer to the kernel.
// Calls put() with an entry whose texts are plain.
template <class Entry, class Put, class... Texts>
static int with_plain_texts(const Entry* entry, Put put, Texts Entry::*... texts) {
  if (entry == nullptr) return put(entry);
  Entry plain_entry = spill::load(entry);
  const PlainString copies[] = {PlainString(plain_entry.*texts)...};
  const char* originals[] = {plain_entry.*texts...};
  for (size_t i = 0; i < sizeof...(texts); ++i)
    if (copies[i] == nullptr && originals[i] != nullptr) return spill::fail(ENOMEM);
  size_t next = 0;
  ((plain_entry.*texts = const_cast<char*>(static_cast<const char*>(copies[next++]))), ...);
  spill::clear_slots();
  return put(&plain_entry);
}
SPILL_EXPORT int __spill_putpwent(const passwd* entry, FILE* stream) {
  return with_plain_texts(
      entry, [=](const passwd* plain_entry) { return putpwent(plain_entry, stream); }, &passwd::pw_name,
      &passwd::pw_passwd, &passwd::pw_gecos, &passwd::pw_dir, &passwd::pw_shell);
}
SPILL_EXPORT int __spill_putspent(const spwd* entry, FILE* stream) {
  return with_plain_texts(
      entry, [=](const spwd* plain_entry) { return putspent(plain_entry, stream); }, &spwd::sp_namp,
      &spwd::sp_pwdp);
}
SPILL_EXPORT int __spill_addmntent(FILE* stream, const mntent* entry) {
  const int result = with_plain_texts(
      entry, [=](const mntent* plain_entry) { return addmntent(stream, plain_entry); }, &mntent::mnt_fsname,
      &mntent::mnt_dir, &mntent::mnt_type, &mntent::mnt_opts);
  return result != 0 ? 1 : 0;
}

// Network.
SPILL_WAIT(int, bindresvport, (int socket, sockaddr_in* address), (socket, PlainObject<sockaddr_in>(address)))
SPILL_EXPORT void __spill_herror(const char* text) { herror(PlainString(text)); }

// Name servers' answers are received directly into the answer buffer.
static int with_answer(unsigned char* answer, int room, auto ask) {
  PlainBytes memory(answer, room > 0 ? static_cast<size_t>(room) : 0, PlainBytes::kInOut);
  if (room > 0 && memory.data() == nullptr) return spill::fail(ENOMEM);
  spill::clear_slots();
  return ask(reinterpret_cast<unsigned char*>(memory.data()));
}
SPILL_EXPORT int __spill_res_query(const char* name, int class_, int type, unsigned char* answer, int room) {
  const PlainString plain_name(name);
  return with_answer(answer, room,
                     [&](unsigned char* to) { return res_query(plain_name, class_, type, to, room); });
}
SPILL_EXPORT int __spill_res_search(const char* name, int class_, int type, unsigned char* answer, int room) {
  const PlainString plain_name(name);
  return with_answer(answer, room,
                     [&](unsigned char* to) { return res_search(plain_name, class_, type, to, room); });
}
SPILL_EXPORT int __spill_res_querydomain(const char* name, const char* domain, int class_, int type,
                                         unsigned char* answer, int room) {
  const PlainString plain_name(name), plain_domain(domain);
  return with_answer(answer, room, [&](unsigned char* to) {
    return res_querydomain(plain_name, plain_domain, class_, type, to, room);
  });
}
SPILL_EXPORT int __spill_res_send(const unsigned char* message, int n, unsigned char* answer, int room) {
  PlainBytes plain_message(message, n > 0 ? static_cast<size_t>(n) : 0, PlainBytes::kIn);
  return with_answer(answer, room, [&](unsigned char* to) {
    return res_send(reinterpret_cast<unsigned char*>(plain_message.data()), n, to, room);
  });
}
SPILL_EXPORT int __spill_res_nquery(res_state state, const char* name, int class_, int type,
                                    unsigned char* answer, int room) {
  PlainObject<struct __res_state> plain_state(state);
  const PlainString plain_name(name);
  return with_answer(answer, room, [&](unsigned char* to) {
    return res_nquery(plain_state, plain_name, class_, type, to, room);
  });
}
SPILL_EXPORT int __spill_res_nsearch(res_state state, const char* name, int class_, int type,
                                     unsigned char* answer, int room) {
  PlainObject<struct __res_state> plain_state(state);
  const PlainString plain_name(name);
  return with_answer(answer, room, [&](unsigned char* to) {
    return res_nsearch(plain_state, plain_name, class_, type, to, room);
  });
}
SPILL_EXPORT int __spill_res_nquerydomain(res_state state, const char* name, const char* domain, int class_,
                                          int type, unsigned char* answer, int room) {
  PlainObject<struct __res_state> plain_state(state);
  const PlainString plain_name(name), plain_domain(domain);
  return with_answer(answer, room, [&](unsigned char* to) {
    return res_nquerydomain(plain_state, plain_name, plain_domain, class_, type, to, room);
  });
}
SPILL_EXPORT int __spill_res_nsend(res_state state, const unsigned char* message, int n,
                                   unsigned char* answer, int room) {
  PlainObject<struct __res_state> plain_state(state);
  PlainBytes plain_message(message, n > 0 ? static_cast<size_t>(n) : 0, PlainBytes::kIn);
  return with_answer(answer, room, [&](unsigned char* to) {
    return res_nsend(plain_state, reinterpret_cast<unsigned char*>(plain_message.data()), n, to, room);
  });
}
