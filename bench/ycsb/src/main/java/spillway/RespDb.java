package spillway;

import java.io.IOException;
import java.io.StreamCorruptedException;
import java.nio.charset.StandardCharsets;

/** By Redis' protocol. */
public final class RespDb extends SocketDb {
    @Override
    protected byte[] get(byte[] key) throws IOException {
        say("*2\r\n$3\r\nGET\r\n$" + key.length + "\r\n", key, "\r\n");
        int size = Integer.parseInt(after('$'));
        return size < 0 ? null : block(size);
    }

    @Override
    protected void set(byte[] key, byte[] value) throws IOException {
        String name = new String(key, StandardCharsets.ISO_8859_1);
        say("*3\r\n$3\r\nSET\r\n$" + key.length + "\r\n" + name + "\r\n$" + value.length + "\r\n", value, "\r\n");
        after('+');
    }

    @Override
    protected boolean remove(byte[] key) throws IOException {
        say("*2\r\n$3\r\nDEL\r\n$" + key.length + "\r\n", key, "\r\n");
        return after(':').equals("1");
    }

    private String after(char kind) throws IOException {
        String reply = line();
        if (reply.charAt(0) != kind) {
            throw new StreamCorruptedException(reply);
        }
        return reply.substring(1);
    }
}
