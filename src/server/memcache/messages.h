// Lines of text replies, without their ends. They are those of memcached 1.6.18, byte for byte, since clients and
// memcached's own tests compare them.
#pragma once
#include <string_view>

namespace server::memcache::messages {

inline constexpr std::string_view kOk = "OK";
inline constexpr std::string_view kEnd = "END";
inline constexpr std::string_view kReset = "RESET";  // stats reset
inline constexpr std::string_view kStored = "STORED";
inline constexpr std::string_view kNotStored = "NOT_STORED";
inline constexpr std::string_view kExists = "EXISTS";
inline constexpr std::string_view kNotFound = "NOT_FOUND";
inline constexpr std::string_view kDeleted = "DELETED";
inline constexpr std::string_view kTouched = "TOUCHED";

// No such verb, or too few or too many words for it.
inline constexpr std::string_view kError = "ERROR";
inline constexpr std::string_view kBadFormat = "CLIENT_ERROR bad command line format";
inline constexpr std::string_view kDeleteUsage =
    "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
inline constexpr std::string_view kBadExptime = "CLIENT_ERROR invalid exptime argument";
inline constexpr std::string_view kBadDelta = "CLIENT_ERROR invalid numeric delta argument";
inline constexpr std::string_view kBadData = "CLIENT_ERROR bad data chunk";
inline constexpr std::string_view kNotNumber = "CLIENT_ERROR cannot increment or decrement non-numeric value";
// Here memcached closes the connection without a reply.
inline constexpr std::string_view kLineTooLong = "CLIENT_ERROR line too long";
inline constexpr std::string_view kDetailUsage = "CLIENT_ERROR usage: stats detail on|off|dump";
inline constexpr std::string_view kTooLarge = "SERVER_ERROR object too large for cache";
inline constexpr std::string_view kNoMemory = "SERVER_ERROR out of memory";
inline constexpr std::string_view kNoMemoryToStore = "SERVER_ERROR out of memory storing object";

// For clients that have to say who they are.
inline constexpr std::string_view kUnauthenticated = "CLIENT_ERROR unauthenticated";
inline constexpr std::string_view kBadCredentials = "CLIENT_ERROR bad authentication token format";
inline constexpr std::string_view kBadCredentialsEnd = "CLIENT_ERROR bad command line termination";
inline constexpr std::string_view kNotAdmitted = "CLIENT_ERROR authentication failure";

// Of meta commands.
inline constexpr std::string_view kGetFlagsTooLong = "CLIENT_ERROR options flags are too long";
inline constexpr std::string_view kFlagsTooLong = "CLIENT_ERROR options flags too long";
inline constexpr std::string_view kInvalidFlag = "CLIENT_ERROR invalid flag";
inline constexpr std::string_view kDuplicateFlag = "CLIENT_ERROR duplicate flag";
// All errors of md's and ma's flags.
inline constexpr std::string_view kBadFlags = "CLIENT_ERROR invalid or duplicate flag";
inline constexpr std::string_view kBadKey = "CLIENT_ERROR error decoding key";
inline constexpr std::string_view kBadToken = "CLIENT_ERROR bad token in command line format";
inline constexpr std::string_view kBadModeLength = "CLIENT_ERROR incorrect length for M token";
inline constexpr std::string_view kBadInitial = "CLIENT_ERROR invalid numeric initial value";
inline constexpr std::string_view kBadDeltaFlag = "CLIENT_ERROR invalid numeric delta value";
inline constexpr std::string_view kOpaqueTooLong = "CLIENT_ERROR opaque token too long";
inline constexpr std::string_view kBadStoreMode = "CLIENT_ERROR invalid mode for ms M token";
inline constexpr std::string_view kBadNumberMode = "CLIENT_ERROR invalid mode for ma M token";

}  // namespace server::memcache::messages
