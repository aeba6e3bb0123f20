// Sessions of clients that Go's programs use: gomemcache and go-redis. foreign_clients_test.py builds and runs them.
//
//	clients MEMCACHE_ADDRESS RESP_ADDRESS
package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"
)

var passed int

// The first wrong answer ends the program.
func equal(what string, expected, got interface{}) {
	if !reflect.DeepEqual(expected, got) {
		fmt.Fprintf(os.Stderr, "%s: %.200s was expected, %.200s came\n", what, fmt.Sprint(expected), fmt.Sprint(got))
		os.Exit(1)
	}
	passed++
}

func done(what string, err error) { equal(what, nil, err) }

func said(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

func large() []byte {
	value := make([]byte, 900_000)
	rand.New(rand.NewSource(1)).Read(value)
	return value
}

// So many at a time, each over and over; their first error.
func together(step func() error) error {
	errs := make(chan error, 8)
	for i := 0; i < cap(errs); i++ {
		go func() {
			var err error
			for j := 0; j < 500 && err == nil; j++ {
				err = step()
			}
			errs <- err
		}()
	}
	var first error
	for i := 0; i < cap(errs); i++ {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

func memcacheSession(client *memcache.Client) {
	done("ping", client.Ping())
	done("flush", client.DeleteAll())
	_, err := client.Get("key")
	equal("get of nothing", memcache.ErrCacheMiss, err)
	done("set", client.Set(&memcache.Item{Key: "key", Value: []byte("value"), Flags: 7, Expiration: 100}))
	item, err := client.Get("key")
	done("get", err)
	equal("its value", "value", string(item.Value))
	equal("its flags", uint32(7), item.Flags)
	equal("add of what is there", memcache.ErrNotStored, client.Add(&memcache.Item{Key: "key", Value: []byte("x")}))
	done("add", client.Add(&memcache.Item{Key: "new", Value: []byte("1")}))
	equal("replace of nothing", memcache.ErrNotStored, client.Replace(&memcache.Item{Key: "none", Value: []byte("x")}))
	equal("append to nothing", memcache.ErrNotStored, client.Append(&memcache.Item{Key: "none", Value: []byte("x")}))
	equal("prepend to nothing", memcache.ErrNotStored, client.Prepend(&memcache.Item{Key: "none", Value: []byte("x")}))
	done("replace", client.Replace(&memcache.Item{Key: "new", Value: []byte("2")}))
	done("append", client.Append(&memcache.Item{Key: "new", Value: []byte("3")}))
	done("prepend", client.Prepend(&memcache.Item{Key: "new", Value: []byte("1")}))
	first, err := client.Get("new")
	done("get", err)
	equal("both", "123", string(first.Value))
	second, _ := client.Get("new")
	first.Value = []byte("10")
	done("cas", client.CompareAndSwap(first))
	second.Value = []byte("20")
	equal("cas of before", memcache.ErrCASConflict, client.CompareAndSwap(second))
	gone, _ := client.Get("key")
	done("delete", client.Delete("key"))
	equal("cas of nothing", memcache.ErrCacheMiss, client.CompareAndSwap(gone))
	done("set", client.Set(gone))
	number, err := client.Increment("new", 5)
	done("incr", err)
	equal("what it is", uint64(15), number)
	number, err = client.Decrement("new", 20)
	done("decr", err)
	equal("what it is", uint64(0), number)
	_, err = client.Increment("none", 1)
	equal("incr of nothing", memcache.ErrCacheMiss, err)
	_, err = client.Decrement("none", 1)
	equal("decr of nothing", memcache.ErrCacheMiss, err)
	_, err = client.Increment("key", 1)
	equal("incr of a text", true, err != nil && strings.Contains(err.Error(), "non-numeric"))
	done("touch", client.Touch("key", 200))
	equal("touch of nothing", memcache.ErrCacheMiss, client.Touch("none", 200))
	done("set that ends soon", client.Set(&memcache.Item{Key: "short", Value: []byte("x"), Expiration: 1}))
	done("touch that ends it soon", client.Touch("new", 1))
	time.Sleep(2100 * time.Millisecond)
	_, err = client.Get("short")
	equal("what has ended", memcache.ErrCacheMiss, err)
	_, err = client.Get("new")
	equal("what has ended by touch", memcache.ErrCacheMiss, err)
	_, err = client.Get("key")
	done("what has not ended", err)
}

func memcacheMany(client *memcache.Client) {
	done("set of a large value", client.Set(&memcache.Item{Key: "large", Value: large()}))
	item, err := client.Get("large")
	done("get of a large value", err)
	equal("large value", true, bytes.Equal(large(), item.Value))
	err = client.Set(&memcache.Item{Key: "large", Value: append(large(), large()...)})
	equal("set of what is too large", true, err != nil && strings.Contains(err.Error(), "SERVER_ERROR object too large for cache"))
	var keys []string
	for i := 0; i < 2000; i++ {
		key := fmt.Sprintf("many%d", i)
		keys = append(keys, key)
		done("one of many sets", client.Set(&memcache.Item{Key: key, Value: []byte("value of " + key)}))
	}
	items, err := client.GetMulti(append(keys, "none"))
	done("get of many", err)
	equal("how many there are", len(keys), len(items))
	for _, key := range keys {
		equal("one of many gets", "value of "+key, string(items[key].Value))
	}
	done("delete", client.Delete("key"))
	equal("delete of nothing", memcache.ErrCacheMiss, client.Delete("key"))
	done("set", client.Set(&memcache.Item{Key: "number", Value: []byte("0")}))
	done("incr of several at a time", together(func() error {
		_, err := client.Increment("number", 1)
		return err
	}))
	item, err = client.Get("number")
	done("get", err)
	equal("what all have counted", "4000", string(item.Value))
	done("flush", client.DeleteAll())
	items, err = client.GetMulti(append(keys, "number"))
	done("get of many", err)
	equal("what was flushed", 0, len(items))
	done("set", client.Set(item))
	done("flush", client.FlushAll())
	_, err = client.Get("number")
	equal("what was flushed", memcache.ErrCacheMiss, err)
}

func redisSession(ctx context.Context, client *redis.Client) {
	done("ping", client.Ping(ctx).Err())
	done("flush", client.FlushDB(ctx).Err())
	equal("get of nothing", redis.Nil, client.Get(ctx, "key").Err())
	done("set", client.Set(ctx, "key", "value", time.Minute).Err())
	equal("get", "value", client.Get(ctx, "key").Val())
	equal("ttl", true, client.TTL(ctx, "key").Val() > 50*time.Second)
	equal("setnx of what is there", false, client.SetNX(ctx, "key", "x", 0).Val())
	equal("setnx", true, client.SetNX(ctx, "new", "x", 0).Val())
	equal("setxx", true, client.SetXX(ctx, "new", "y", 0).Val())
	equal("setxx of nothing", false, client.SetXX(ctx, "none", "x", 0).Val())
	equal("set nx get", "y", client.SetArgs(ctx, "new", "z", redis.SetArgs{Mode: "NX", Get: true}).Val())
	equal("getset", "y", client.GetSet(ctx, "new", "10.5").Val())
	equal("incrbyfloat", 10.75, client.IncrByFloat(ctx, "new", 0.25).Val())
	done("set keepttl", client.Set(ctx, "key", "kept", redis.KeepTTL).Err())
	equal("persist", true, client.Persist(ctx, "key").Val())
	done("mset", client.MSet(ctx, "a", "1", "b", "2").Err())
	equal("mget", []interface{}{"1", "2", nil}, client.MGet(ctx, "a", "b", "none").Val())
	equal("incrby", int64(11), client.IncrBy(ctx, "a", 10).Val())
	equal("decrby", int64(1), client.DecrBy(ctx, "a", 10).Val())
	equal("append", int64(3), client.Append(ctx, "b", "34").Val())
	equal("getrange", "34", client.GetRange(ctx, "b", 1, 2).Val())
	equal("setrange", int64(3), client.SetRange(ctx, "b", 1, "xy").Val())
	equal("strlen", int64(3), client.StrLen(ctx, "b").Val())
	equal("getdel", "2xy", client.GetDel(ctx, "b").Val())
	equal("exists", int64(2), client.Exists(ctx, "a", "b", "key").Val())
	equal("type", "string", client.Type(ctx, "a").Val())
	equal("unlink", int64(1), client.Unlink(ctx, "new", "none").Val())
	equal("del", int64(1), client.Del(ctx, "a", "none").Val())
	equal("dbsize", int64(1), client.DBSize(ctx).Val())
	equal("info", true, strings.Contains(client.Info(ctx, "server").Val(), "redis_version:7"))
	told, err := client.ClientInfo(ctx).Result()
	done("client info", err)
	equal("its user", "default", told.User)
	equal("incr of a text", "ERR value is not an integer or out of range", said(client.Incr(ctx, "key").Err()))
	equal("a command that there is not", "ERR unknown command 'lpush', with args beginning with: 'list' 'x' ", said(client.LPush(ctx, "list", "x").Err()))
}

func redisTransactions(ctx context.Context, client *redis.Client) {
	transaction := client.TxPipeline()
	sum, got, nothing := transaction.Incr(ctx, "sum"), transaction.Get(ctx, "sum"), transaction.Exists(ctx, "none")
	_, err := transaction.Exec(ctx)
	done("transaction", err)
	equal("incr in a transaction", int64(1), sum.Val())
	equal("get in a transaction", "1", got.Val())
	equal("exists in a transaction", int64(0), nothing.Val())
	err = client.Watch(ctx, func(watched *redis.Tx) error {
		done("set of what is watched", client.Set(ctx, "sum", "5", 0).Err())
		_, err := watched.TxPipelined(ctx, func(queue redis.Pipeliner) error {
			return queue.Set(ctx, "sum", "6", 0).Err()
		})
		return err
	}, "sum")
	equal("transaction of what has changed", redis.TxFailedErr, err)
	equal("what it has left", "5", client.Get(ctx, "sum").Val())
	equal("msetnx", true, client.MSetNX(ctx, "first", "1", "second", "2").Val())
	equal("msetnx of what is there", false, client.MSetNX(ctx, "third", "3", "second", "4").Val())
	equal("what it has left", []interface{}{"1", "2", nil}, client.MGet(ctx, "first", "second", "third").Val())
}

func redisEnds(ctx context.Context, client *redis.Client) {
	at := time.Now().Add(100 * time.Second).Truncate(time.Millisecond)
	done("set", client.Set(ctx, "key", "value", 0).Err())
	equal("ttl of none", time.Duration(-1), client.TTL(ctx, "key").Val())
	equal("ttl of nothing", time.Duration(-2), client.TTL(ctx, "none").Val())
	equal("pexpireat", true, client.PExpireAt(ctx, "key", at).Val())
	equal("pexpiretime", at.UnixMilli(), client.PExpireTime(ctx, "key").Val().Milliseconds())
	equal("expirenx of what ends", false, client.ExpireNX(ctx, "key", time.Hour).Val())
	equal("expiregt", true, client.ExpireGT(ctx, "key", time.Hour).Val())
	equal("pttl", true, client.PTTL(ctx, "key").Val() > 30*time.Minute)
	equal("getex", "value", client.GetEx(ctx, "key", 2*time.Hour).Val())
	equal("what it has made", true, client.TTL(ctx, "key").Val() > time.Hour)
	equal("getex persist", "value", client.GetEx(ctx, "key", 0).Val())
	equal("what it has left", time.Duration(-1), client.TTL(ctx, "key").Val())
	equal("expire", true, client.Expire(ctx, "key", time.Hour).Val())
	done("setex", client.SetEx(ctx, "short", "x", time.Hour).Err())
	done("set with an end", client.SetArgs(ctx, "short", "x", redis.SetArgs{ExpireAt: at}).Err())
	equal("expiretime", at.Unix(), int64(client.ExpireTime(ctx, "short").Val()/time.Second))
	done("set that ends soon", client.Set(ctx, "short", "x", time.Millisecond).Err())
	equal("pexpire that ends soon", true, client.PExpire(ctx, "key", time.Millisecond).Val())
	time.Sleep(50 * time.Millisecond)
	equal("what has ended", redis.Nil, client.Get(ctx, "short").Err())
	equal("what has ended by pexpire", redis.Nil, client.Get(ctx, "key").Err())
}

func redisMany(ctx context.Context, client *redis.Client) {
	done("set of a large value", client.Set(ctx, "large", large(), 0).Err())
	got, err := client.Get(ctx, "large").Bytes()
	done("get of a large value", err)
	equal("large value", true, bytes.Equal(large(), got))
	done("set", client.Set(ctx, "number", 0, 0).Err())
	done("incr of several at a time", together(func() error { return client.Incr(ctx, "number").Err() }))
	equal("what all have counted", "4000", client.Get(ctx, "number").Val())
	pipeline := client.Pipeline()
	var found []*redis.StringCmd
	for i := 0; i < 2000; i++ {
		key := fmt.Sprintf("many%d", i)
		pipeline.Set(ctx, key, "value of "+key, 0)
		found = append(found, pipeline.Get(ctx, key))
	}
	_, err = pipeline.Exec(ctx)
	done("pipeline", err)
	for i, each := range found {
		equal("one of many", fmt.Sprintf("value of many%d", i), each.Val())
	}
	seen := map[string]bool{}
	iterator := client.Scan(ctx, 0, "many*", 300).Iterator()
	for iterator.Next(ctx) {
		seen[iterator.Val()] = true
	}
	done("scan", iterator.Err())
	equal("all keys", 2000, len(seen))
	done("flush", client.FlushDB(ctx).Err())
	equal("what was flushed", int64(0), client.DBSize(ctx).Val())
}

func main() {
	memcached := memcache.New(os.Args[1])
	memcached.Timeout = 20 * time.Second
	memcached.MaxIdleConns = 16
	memcacheSession(memcached)
	memcacheMany(memcached)
	done("close", memcached.Close())

	ctx := context.Background()
	resp := redis.NewClient(&redis.Options{Addr: os.Args[2], ReadTimeout: 20 * time.Second})
	redisSession(ctx, resp)
	redisTransactions(ctx, resp)
	redisEnds(ctx, resp)
	redisMany(ctx, resp)
	done("close", resp.Close())
	fmt.Printf("%d checks passed\n", passed)
}
