package spillway;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * A database of YCSB that is a server with keys and values: a record is one value, all its fields behind each other (length and name, length and
 * bytes), and each of YCSB's threads has a connection. An update that writes all fields is one request, another one two.
 *
 * <p>Properties: host, port.
 */
public abstract class SocketDb extends DB {
    private static final int BUFFER_BYTES = 16 << 10;

    private Socket socket;
    private InputStream in;
    private OutputStream out;

    /** The value of a key; null: there is none. */
    protected abstract byte[] get(byte[] key) throws IOException;

    protected abstract void set(byte[] key, byte[] value) throws IOException;

    protected abstract boolean remove(byte[] key) throws IOException;

    @Override
    public void init() throws DBException {
        try {
            socket = new Socket(getProperties().getProperty("host"), Integer.parseInt(getProperties().getProperty("port")));
            socket.setTcpNoDelay(true);
            in = new BufferedInputStream(socket.getInputStream(), BUFFER_BYTES);
            out = socket.getOutputStream();
        } catch (IOException error) {
            throw new DBException(error);
        }
    }

    @Override
    public void cleanup() throws DBException {
        try {
            socket.close();
        } catch (IOException error) {
            throw new DBException(error);
        }
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
        try {
            byte[] value = get(bytes(key));
            if (value == null) {
                return Status.NOT_FOUND;
            }
            unpack(value, fields, result);
            return Status.OK;
        } catch (IOException error) {
            return Status.ERROR;
        }
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
        try {
            set(bytes(key), pack(values));
            return Status.OK;
        } catch (IOException error) {
            return Status.ERROR;
        }
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
        if (Boolean.parseBoolean(getProperties().getProperty("writeallfields"))) {
            return insert(table, key, values);
        }
        Map<String, ByteIterator> all = new HashMap<>();
        Status status = read(table, key, null, all);
        if (!status.isOk()) {
            return status;
        }
        all.putAll(values);
        return insert(table, key, all);
    }

    @Override
    public Status delete(String table, String key) {
        try {
            return remove(bytes(key)) ? Status.OK : Status.NOT_FOUND;
        } catch (IOException error) {
            return Status.ERROR;
        }
    }

    @Override
    public Status scan(String table, String first, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
        return Status.NOT_IMPLEMENTED;
    }

    protected static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    /** Sends a head, a value and an end with one call. */
    protected void say(String head, byte[] value, String end) throws IOException {
        byte[] request = new byte[head.length() + value.length + end.length()];
        System.arraycopy(bytes(head), 0, request, 0, head.length());
        System.arraycopy(value, 0, request, head.length(), value.length);
        System.arraycopy(bytes(end), 0, request, head.length() + value.length, end.length());
        out.write(request);
    }

    /** A line without its end. */
    protected String line() throws IOException {
        StringBuilder text = new StringBuilder();
        for (int c; (c = in.read()) != '\n'; ) {
            if (c < 0) {
                throw new EOFException("the server has ended the connection");
            }
            if (c != '\r') {
                text.append((char) c);
            }
        }
        return text.toString();
    }

    /** So many bytes, and the end of a line behind them. */
    protected byte[] block(int size) throws IOException {
        DataInputStream data = new DataInputStream(in);
        byte[] value = new byte[size];
        data.readFully(value);
        data.readFully(new byte[2]);
        return value;
    }

    private static byte[] pack(Map<String, ByteIterator> values) {
        Map<String, byte[]> fields = new HashMap<>();
        int size = 0;
        for (Map.Entry<String, ByteIterator> field : values.entrySet()) {
            byte[] value = field.getValue().toArray();
            fields.put(field.getKey(), value);
            size += 8 + field.getKey().length() + value.length;
        }
        ByteBuffer packed = ByteBuffer.allocate(size);
        for (Map.Entry<String, byte[]> field : fields.entrySet()) {
            packed.putInt(field.getKey().length()).put(bytes(field.getKey()));
            packed.putInt(field.getValue().length).put(field.getValue());
        }
        return packed.array();
    }

    private static void unpack(byte[] value, Set<String> fields, Map<String, ByteIterator> result) {
        ByteBuffer packed = ByteBuffer.wrap(value);
        while (packed.hasRemaining()) {
            byte[] name = new byte[packed.getInt()];
            packed.get(name);
            byte[] bytes = new byte[packed.getInt()];
            packed.get(bytes);
            String field = new String(name, StandardCharsets.ISO_8859_1);
            if (fields == null || fields.contains(field)) {
                result.put(field, new ByteArrayByteIterator(bytes));
            }
        }
    }
}
