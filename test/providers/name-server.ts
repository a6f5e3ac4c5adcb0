/** A real name server over UDP, for tests: answers the names of a zone, and denies or ignores all others. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv4 } from 'node:net'

/** A name's addresses; `silent` for no answer at all. May be a function of how often the name was asked, from 1. */
export type Zone = Readonly<
  Record<string, readonly string[] | 'silent' | ((asked: number) => readonly string[])>
>

/** Starts a server on a free port. @returns its address for a resolver, and how to end it. */
export async function startNameServer(zone: Zone) {
  const asked = new Map<string, number>()
  const socket = createSocket('udp4')
  socket.on('message', (question, from) => {
    const name = readName(question)
    const found = zone[name] ?? []
    if (found === 'silent') return
    const type = question.readUInt16BE(question.indexOf(0, 12) + 1)
    if (type === 1) asked.set(name, (asked.get(name) ?? 0) + 1)
    const addresses = typeof found === 'function' ? found(asked.get(name) ?? 1) : found
    socket.send(
      answerTo(
        question,
        addresses.filter((address) => isIPv4(address) === (type === 1)),
      ),
      from.port,
      from.address,
    )
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { servers: [`127.0.0.1:${socket.address().port}`], close: () => socket.close() }
}

function readName(question: Buffer): string {
  const labels: string[] = []
  for (let at = 12; (question[at] ?? 0) > 0; at += (question[at] ?? 0) + 1)
    labels.push(question.toString('latin1', at + 1, at + 1 + (question[at] ?? 0)))
  return labels.join('.').toLowerCase()
}

/** An empty list is answered as an unknown name. */
function answerTo(question: Buffer, addresses: readonly string[]): Buffer {
  const header = Buffer.from(question.subarray(0, 12))
  header.writeUInt16BE(addresses.length > 0 ? 0x8180 : 0x8183, 2)
  header.writeUInt16BE(addresses.length, 6)
  header.writeUInt32BE(0, 8)
  const records = addresses.map((address) => {
    const bytes = toBytes(address)
    return Buffer.concat([
      Buffer.from([0xc0, 0x0c, 0, bytes.length === 4 ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, bytes.length]),
      bytes,
    ])
  })
  return Buffer.concat([header, question.subarray(12, question.indexOf(0, 12) + 5), ...records])
}

/** @param address IPv4, or IPv6 in the form `prefix::suffix`. */
function toBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  const [head = [], tail = []] = address
    .split('::')
    .map((half) => half.split(':').filter((group) => group !== ''))
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex')
}
