package spillway;

import java.io.IOException;
import java.io.StreamCorruptedException;
import java.nio.charset.StandardCharsets;

/** By memcached's text protocol. */
public final class MemcacheDb extends SocketDb {
    @Override
    protected byte[] get(byte[] key) throws IOException {
        say("get ", key, "\r\n");
        String head = line();
        if (head.equals("END")) {
            return null;
        }
        if (!head.startsWith("VALUE ")) {
            throw new StreamCorruptedException(head);
        }
        byte[] value = block(Integer.parseInt(head.substring(head.lastIndexOf(' ') + 1)));
        expect("END", line());
        return value;
    }

    @Override
    protected void set(byte[] key, byte[] value) throws IOException {
        say("set " + new String(key, StandardCharsets.ISO_8859_1) + " 0 0 " + value.length + "\r\n", value, "\r\n");
        expect("STORED", line());
    }

    @Override
    protected boolean remove(byte[] key) throws IOException {
        say("delete ", key, "\r\n");
        return line().equals("DELETED");
    }

    private static void expect(String known, String came) throws StreamCorruptedException {
        if (!came.equals(known)) {
            throw new StreamCorruptedException(came);
        }
    }
}
