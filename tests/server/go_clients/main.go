// Sessions of clients that Go's programs use: gomemcache and go-redis. foreign_clients_test.py builds and runs them.
//
//	clients MEMCACHE_ADDRESS RESP_ADDRESS
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"
)

var passed int

// The first wrong answer ends the program.
func equal(what string, expected, got interface{}) {
	if !reflect.DeepEqual(expected, got) {
		fmt.Fprintf(os.Stderr, "%s: %.200v was expected, %.200v came\n", what, expected, got)
		os.Exit(1)
	}
	passed++
}

func done(what string, err error) { equal(what, nil, err) }

func large() []byte {
	value := make([]byte, 900_000)
	for i := range value {
		value[i] = byte(i * 31 >> 3)
	}
	return value
}

func memcacheSession(address string) {
	client := memcache.New(address)
	client.Timeout = 20 * time.Second
	client.MaxIdleConns = 16
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
	number, err := client.Increment("new", 5)
	done("incr", err)
	equal("what it is", uint64(15), number)
	number, err = client.Decrement("new", 20)
	done("decr", err)
	equal("what it is", uint64(0), number)
	_, err = client.Increment("none", 1)
	equal("incr of nothing", memcache.ErrCacheMiss, err)
	_, err = client.Increment("key", 1)
	equal("incr of a text", true, err != nil && strings.Contains(err.Error(), "non-numeric"))
	done("touch", client.Touch("key", 200))
	equal("touch of nothing", memcache.ErrCacheMiss, client.Touch("none", 200))
	done("set of a large value", client.Set(&memcache.Item{Key: "large", Value: large()}))
	item, err = client.Get("large")
	done("get of a large value", err)
	equal("large value", true, bytes.Equal(large(), item.Value))
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
	var together sync.WaitGroup
	done("set", client.Set(&memcache.Item{Key: "number", Value: []byte("0")}))
	for i := 0; i < 8; i++ {
		together.Add(1)
		go func() {
			defer together.Done()
			for j := 0; j < 500; j++ {
				client.Increment("number", 1)
			}
		}()
	}
	together.Wait()
	item, err = client.Get("number")
	done("get", err)
	equal("what all have counted", "4000", string(item.Value))
}

func redisSession(address string) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: address, ReadTimeout: 20 * time.Second})
	defer client.Close()
	done("ping", client.Ping(ctx).Err())
	done("flush", client.FlushDB(ctx).Err())
	equal("get of nothing", redis.Nil, client.Get(ctx, "key").Err())
	done("set", client.Set(ctx, "key", "value", time.Minute).Err())
	equal("get", "value", client.Get(ctx, "key").Val())
	equal("ttl", true, client.TTL(ctx, "key").Val() > 50*time.Second)
	equal("setnx", false, client.SetNX(ctx, "key", "x", 0).Val())
	done("set keepttl", client.Set(ctx, "key", "kept", redis.KeepTTL).Err())
	equal("persist", true, client.Persist(ctx, "key").Val())
	done("mset", client.MSet(ctx, "a", "1", "b", "2").Err())
	equal("mget", []interface{}{"1", "2", nil}, client.MGet(ctx, "a", "b", "none").Val())
	equal("incrby", int64(11), client.IncrBy(ctx, "a", 10).Val())
	equal("append", int64(3), client.Append(ctx, "b", "34").Val())
	equal("getrange", "34", client.GetRange(ctx, "b", 1, 2).Val())
	equal("getdel", "234", client.GetDel(ctx, "b").Val())
	equal("exists", int64(2), client.Exists(ctx, "a", "b", "key").Val())
	done("set of a large value", client.Set(ctx, "large", large(), 0).Err())
	got, err := client.Get(ctx, "large").Bytes()
	done("get of a large value", err)
	equal("large value", true, bytes.Equal(large(), got))
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
	equal("a command that there is not", true, client.LPush(ctx, "list", "x").Err() != nil)
	equal("del", int64(1), client.Del(ctx, "key", "none").Val())
}

func main() {
	memcacheSession(os.Args[1])
	redisSession(os.Args[2])
	fmt.Printf("%d checks passed\n", passed)
}
