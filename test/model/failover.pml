/*
 * Model of rail failover for spin: see doc/failover.md, whose names it uses.
 *
 * One receiver, two senders. Sender 0 has two messages of two stripes, one a
 * rail; sender 1, the third party, has one message of one stripe on rail 0.
 * Every event is one atomic step, and any that is enabled may come next:
 *
 *   - a write touches the target's memory, lands, is lost, or waits for ever;
 *   - its entry is read from the receiver's queue, its acknowledgement arrives
 *     or is lost;
 *   - a sender stops using a rail, for a cause or for none;
 *   - a control message is handled, late, once or twice, in any order;
 *   - a rail returns to use.
 *
 * Left out: how the channel repeats what is lost (it delivers), names and
 * probes of endpoints, and the content of messages.
 *
 * -DBUG_x takes out one rule each; spin must then find an error.
 */
#define PEERS 2
#define RAILS 2
#define MSGS 3   /* 0 and 1 of sender 0, 2 of sender 1 */
#define STRIPES 2
#define INCS 5   /* incarnations of a rail that are told apart */
#define WRITES (2 * MSGS * STRIPES)
#define LAST_INC (INCS - 1)

#ifndef LOSSES
#define LOSSES 1 /* writes, or acknowledgements, that the network loses */
#endif
#ifndef DOUBTS
#define DOUBTS 1 /* rails that are suspected without any cause */
#endif
#ifndef REPEATS
#define REPEATS 2 /* times that a control message is handled */
#endif

#define RETIRED 15

#define sender_of(m) ((m) == 2 -> 1 : 0)
#define nseg_of(m) ((m) == 0 -> 2 : 1)
#define slot(p, r) ((p) * RAILS + (r))
#define item(p, r, m) (((p) * RAILS + (r)) * MSGS + (m))
#define stripe(m, s) ((m) * STRIPES + (s))
#define last_write(x) (2 * (x) + st_turn[x])
#define stripe_of(i) ((i) / 2)
#define msg_of(i) ((i) / (2 * STRIPES))
/* Its sender does not know yet what became of it. */
#define is_awaited(i) (last_write(stripe_of(i)) == (i) && \
		       (st[stripe_of(i)] == FLYING || \
			st[stripe_of(i)] == UNKNOWN))

/* -- the network: the last two writes of each stripe, in turn -- */
mtype = { NONE, OUT, THERE, LOST };
mtype wr[WRITES];	/* nothing; on its way; all of it there; never will be */
byte w_rail[WRITES];
byte w_inc[WRITES];	/* the incarnation of the rail that it goes to */
bit w_entry[WRITES];	/* its entry waits in the receiver's queue */
bit w_acks[WRITES];	/* its acknowledgement is on its way */
byte losses = LOSSES;
byte doubts = DOUBTS;

/* -- receiver -- */
byte inc[RAILS];		 /* of D that is open */
byte count[MSGS * RAILS];	 /* writes of each rail that were counted */
byte counted[MSGS];		 /* over all rails */
bit recv_done[MSGS];
bit told[PEERS * RAILS];	 /* FENCED without items is on its way */

/* -- senders: paths -- */
mtype = { UP, ASK, DOWN };
mtype state[PEERS * RAILS];
byte known[PEERS * RAILS];	 /* newest incarnation heard of */
byte used[PEERS * RAILS];	 /* incarnation in use while UP, asked in ASK */

/* -- senders: stripes -- */
mtype = { TO_POST, FLYING, UNKNOWN, ACKED };
mtype st[MSGS * STRIPES];
byte st_rail[MSGS * STRIPES];
bit st_turn[MSGS * STRIPES];	/* which of its two writes is the last */
byte acked[MSGS * RAILS];
bit send_done[MSGS];

/* -- the channel: FENCE of a path's incarnation, and its answers -- */
byte fence_left[PEERS * RAILS];	 /* times that it will be handled yet */
byte fence_inc[PEERS * RAILS];
byte fence_acked[PEERS * RAILS * MSGS];
bit fence_item[PEERS * RAILS * MSGS];
byte answer_left[PEERS * RAILS];
byte answer_old[PEERS * RAILS];
byte answer_new[PEERS * RAILS];
byte answer_count[PEERS * RAILS * MSGS];
bit answer_item[PEERS * RAILS * MSGS];

/* what really happened */
bit arrived[MSGS * STRIPES];

/* scratch of one step, zero between steps */
byte m, s, w;

inline complete_if_whole(msg)
{
	if
	:: counted[msg] == nseg_of(msg) && !recv_done[msg] ->
		recv_done[msg] = 1;
		assert(arrived[stripe(msg, 0)]);
		assert(nseg_of(msg) == 1 || arrived[stripe(msg, 1)]);
	:: else
	fi
}

/* The receiver's queue has an entry for write @x. */
inline read_entry(x)
{
	w_entry[x] = 0;
	assert(!recv_done[msg_of(x)]);
	count[msg_of(x) * RAILS + w_rail[x]]++;
	counted[msg_of(x)]++;
	assert(counted[msg_of(x)] <= nseg_of(msg_of(x)));
	complete_if_whole(msg_of(x));
	tidy(x)
}

/* A record that nothing can come of any more. */
inline tidy(x)
{
	if
	:: !w_entry[x] && !w_acks[x] &&
	   (wr[x] == THERE || wr[x] == LOST) && !is_awaited(x) ->
		wr[x] = NONE;
		w_rail[x] = 0;
		w_inc[x] = 0
	:: else
	fi
}

inline post(msg, str, rail)
{
	st_turn[stripe(msg, str)] = 1 - st_turn[stripe(msg, str)];
	w = last_write(stripe(msg, str));
	/* At most one write of a stripe that may yet do something. */
	assert(wr[w] == NONE);
	assert(wr[w ^ 1] == NONE || wr[w ^ 1] == LOST);
	w_rail[w] = rail;
	w_inc[w] = used[slot(sender_of(msg), rail)];
	if
	:: w_inc[w] != inc[rail] -> wr[w] = LOST /* to a D that is closed */
	:: else -> wr[w] = OUT
	fi;
	st[stripe(msg, str)] = FLYING;
	st_rail[stripe(msg, str)] = rail;
	w = 0
}

inline finish_if_whole(msg)
{
	if
	:: !send_done[msg] && st[stripe(msg, 0)] == ACKED &&
	   (nseg_of(msg) == 1 || st[stripe(msg, 1)] == ACKED) ->
		send_done[msg] = 1;
		assert(arrived[stripe(msg, 0)]);
		assert(nseg_of(msg) == 1 || arrived[stripe(msg, 1)]);
	:: else
	fi
}

/* UP(i) -> ASK(i): nothing is posted any more; FENCE names what is out. */
inline ask(peer, rail)
{
	state[slot(peer, rail)] = ASK;
	fence_inc[slot(peer, rail)] = used[slot(peer, rail)];
	fence_left[slot(peer, rail)] = REPEATS;
	m = 0;
	do
	:: m < MSGS ->
		fence_item[item(peer, rail, m)] = 0;
		fence_acked[item(peer, rail, m)] = 0;
		s = 0;
		do
		:: s < nseg_of(m) && sender_of(m) == peer ->
			if
			:: st[stripe(m, s)] == FLYING &&
			   st_rail[stripe(m, s)] == rail ->
#ifdef BUG_NO_WAIT
				st[stripe(m, s)] = TO_POST;
#else
				st[stripe(m, s)] = UNKNOWN;
#endif
				fence_item[item(peer, rail, m)] = 1;
				fence_acked[item(peer, rail, m)] =
					acked[m * RAILS + rail]
			:: else
			fi;
			s++
		:: else -> break
		od;
		m++
	:: else -> break
	od;
	m = 0;
	s = 0
}

/* Opens the next D, closes this one, reads the queue until it is empty, tells
 * all peers. */
inline fence(rail)
{
	assert(inc[rail] < LAST_INC);
	inc[rail]++;
	w = 0;
	do
	:: w < WRITES ->
		if
#ifndef BUG_NO_CLOSE
		:: wr[w] == OUT && w_rail[w] == rail -> wr[w] = LOST; tidy(w)
#endif
#ifndef BUG_NO_DRAIN
		:: w_entry[w] && w_rail[w] == rail -> read_entry(w)
#endif
		:: else
		fi;
		w++
	:: else -> break
	od;
	told[slot(0, rail)] = 1;
	told[slot(1, rail)] = 1;
	w = 0
}

inline answer(peer, rail)
{
	answer_old[slot(peer, rail)] = fence_inc[slot(peer, rail)];
	answer_new[slot(peer, rail)] = inc[rail];
	answer_left[slot(peer, rail)] = REPEATS;
	m = 0;
	do
	:: m < MSGS ->
		answer_item[item(peer, rail, m)] = fence_item[item(peer, rail, m)];
		answer_count[item(peer, rail, m)] = 0;
		if
		:: fence_item[item(peer, rail, m)] && recv_done[m] ->
			answer_count[item(peer, rail, m)] = RETIRED
		:: fence_item[item(peer, rail, m)] && !recv_done[m] ->
			answer_count[item(peer, rail, m)] =
				count[m * RAILS + rail];
			assert(fence_acked[item(peer, rail, m)] <=
			       count[m * RAILS + rail])
		:: else
		fi;
		m++
	:: else -> break
	od;
	m = 0
}

/* What was unknown on this path is known now. */
inline resolve(peer, rail)
{
	m = 0;
	do
	:: m < MSGS ->
		s = 0;
		do
		:: s < nseg_of(m) && sender_of(m) == peer ->
			if
			:: answer_item[item(peer, rail, m)] &&
			   st[stripe(m, s)] == UNKNOWN &&
			   st_rail[stripe(m, s)] == rail ->
				if
				:: answer_count[item(peer, rail, m)] >
				   acked[m * RAILS + rail] ->
					st[stripe(m, s)] = ACKED;
					acked[m * RAILS + rail]++;
				:: else ->
					st[stripe(m, s)] = TO_POST
				fi;
				tidy(last_write(stripe(m, s)))
			:: else
			fi;
			s++
		:: else -> break
		od;
		finish_if_whole(m);
		m++
	:: else -> break
	od;
	m = 0;
	s = 0
}

inline learn(peer, rail, i)
{
	if
	:: i > known[slot(peer, rail)] -> known[slot(peer, rail)] = i
	:: else
	fi
}

#define all_done (send_done[0] && send_done[1] && send_done[2] && \
		  recv_done[0] && recv_done[1] && recv_done[2])

#define is_out_one(m, s, r) (s < nseg_of(m) && st_rail[stripe(m, s)] == r && \
			     (st[stripe(m, s)] == FLYING || \
			      st[stripe(m, s)] == UNKNOWN))
#ifdef BUG_TWO_OPEN
#define is_out(m, r) false
#else
/* A write of the message is out there already. */
#define is_out(m, r) (is_out_one(m, 0, r) || is_out_one(m, 1, r))
#endif
#define has_entry (w_entry[0] || w_entry[1] || w_entry[2] || w_entry[3] || \
		   w_entry[4] || w_entry[5] || w_entry[8] || w_entry[9])
/* No acknowledgement will come for the last write of this stripe. */
#define is_lost(x, p, r) (sender_of((x) / STRIPES) == p && \
			  st[x] == FLYING && st_rail[x] == r && \
			  !w_acks[last_write(x)] && wr[last_write(x)] != OUT)
#define has_cause(p, r) (is_lost(0, p, r) || is_lost(1, p, r) || \
			 is_lost(2, p, r) || is_lost(3, p, r) || \
			 is_lost(4, p, r))

/* The network and the receiver's queue, for one record of a write. */
proctype network(byte i)
{
end:
	do
	/* it lands: its last bytes reach memory */
	:: d_step { wr[i] == OUT ->
		assert(!recv_done[msg_of(i)]);
		wr[i] = THERE;
		w_entry[i] = 1;
		w_acks[i] = 1;
		arrived[stripe_of(i)] = 1
	   }
	/* it is cut when some of its bytes have reached memory */
	:: d_step { wr[i] == OUT && losses > 0 ->
		assert(!recv_done[msg_of(i)]);
		losses--;
		wr[i] = LOST;
		tidy(i)
	   }
	/* its acknowledgement is lost */
	:: d_step { w_acks[i] && losses > 0 ->
		losses--;
		w_acks[i] = 0;
		tidy(i)
	   }
	/* its acknowledgement arrives */
	:: d_step { w_acks[i] ->
		w_acks[i] = 0;
		if
		:: is_awaited(i) ->
			st[stripe_of(i)] = ACKED;
			acked[msg_of(i) * RAILS + w_rail[i]]++;
			finish_if_whole(msg_of(i))
		:: else
		fi;
		tidy(i)
	   }
	od
}

/* Both ends of a path of sender @p over rail @r. */
proctype path(byte p, r)
{
end:
	do
	:: d_step { state[slot(p, r)] == UP && has_cause(p, r) -> ask(p, r) }
	:: d_step { state[slot(p, r)] == UP && doubts > 0 ->
		doubts--;
		ask(p, r)
	   }
	/* the receiver */
	:: d_step { fence_left[slot(p, r)] > 0 ->
		fence_left[slot(p, r)]--;
		assert(fence_inc[slot(p, r)] <= inc[r]);
		if
#ifndef BUG_NO_FENCE
		:: fence_inc[slot(p, r)] == inc[r] -> fence(r)
#endif
		:: else
		fi;
		answer(p, r)
	   }
	/* the sender */
	:: d_step { answer_left[slot(p, r)] > 0 ->
		answer_left[slot(p, r)]--;
		learn(p, r, answer_new[slot(p, r)]);
		if
		:: state[slot(p, r)] == ASK &&
#ifdef BUG_OLD_ANSWER
		   true
#else
		   answer_old[slot(p, r)] == used[slot(p, r)]
#endif
		   ->
			resolve(p, r);
			state[slot(p, r)] = DOWN
		:: else
		fi
	   }
	:: d_step { told[slot(p, r)] ->
		told[slot(p, r)] = 0;
		learn(p, r, inc[r]);
		if
		:: state[slot(p, r)] == UP &&
		   used[slot(p, r)] < known[slot(p, r)] -> ask(p, r)
		:: else
		fi
	   }
	/* probes have gone through the newest D */
	:: d_step { state[slot(p, r)] == DOWN ->
		used[slot(p, r)] = known[slot(p, r)];
		state[slot(p, r)] = UP
	   }
	od
}

/* The receiver reads its queue. */
proctype poll()
{
end:
	do
	:: d_step { has_entry ->
		w = 0;
		do
		:: w < WRITES ->
			if
			:: w_entry[w] -> read_entry(w)
			:: else
			fi;
			w++
		:: else -> break
		od;
		w = 0
	   }
	od
}

/* A stripe that did not arrive goes to a rail that works. */
proctype repeat(byte msg, str, rail)
{
end:
	do
	:: d_step { st[stripe(msg, str)] == TO_POST &&
		state[slot(sender_of(msg), rail)] == UP &&
		!is_out(msg, rail) -> post(msg, str, rail)
	   }
	od
}

init
{
	d_step {
		m = 0;
		do
		:: m < PEERS * RAILS -> state[m] = UP; m++
		:: else -> break
		od;
		m = 0;
		do
		:: m < MSGS * STRIPES -> st[m] = ACKED; m++
		:: else -> break
		od;
		m = 0;
		do
		:: m < WRITES -> wr[m] = NONE; m++
		:: else -> break
		od;
		m = 0;
		/* The plan: stripe i on rail i. */
		post(0, 0, 0);
		post(0, 1, 1);
		post(1, 0, 1);
		post(2, 0, 0);
	}
	atomic {
		byte i = 0;
		do
		:: i < WRITES ->
			if
			:: i / 2 % STRIPES < nseg_of(msg_of(i)) -> run network(i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		run poll();
		run path(0, 0);
		run path(0, 1);
		run path(1, 0);
		run repeat(0, 0, 0);
		run repeat(0, 0, 1);
		run repeat(0, 1, 0);
		run repeat(0, 1, 1);
		run repeat(1, 0, 0);
		run repeat(1, 0, 1);
		run repeat(2, 0, 0);
		i = 0
	}
	/* Nothing can happen any more: then all is done. */
	timeout -> assert(all_done)
}
