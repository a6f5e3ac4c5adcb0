/**
 * Sellers whose payee is another address for each purchase, so that the chain tells how often each was paid. `/{kind}/{buyer}/{n}`
 * speaks x402 in both versions, `/mpp/{kind}/{buyer}/{n}` MPP. Kinds are named for what happens once the payment is taken.
 */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { evm, Mppx } from 'mppx/server'
import { getAddress, parseAbi } from 'viem'
import { z } from 'zod'
import type { Chain, Hex } from '../../src/providers/chain/port.ts'

const PRICE = 1_000n
const NETWORK = 'eip155:84532'
const LATE_MS = 400

/** After these, an honest seller delivers when the same payment is presented again. */
const failing = ['lost-answer', '504', 'late-settle', '402-again'] as const
/** These take the payment and want another one, for ever. */
const dishonest = ['price-raised', 'payee-changed', 'redirect'] as const
export const kinds = ['honest', ...failing, ...dishonest] as const
export type Kind = (typeof kinds)[number]

const hex = z.templateLiteral(['0x', z.string()])
const authorization = z.looseObject({
  from: hex,
  to: hex,
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: hex,
})
const paid = z.looseObject({ payload: z.looseObject({ signature: hex, authorization }) })
const mppPaid = z.looseObject({ payload: authorization.extend({ signature: hex }) })

const abi = parseAbi([
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
])

/** The addresses that a purchase may have paid: its seller's, and those that a dishonest one names later. */
export function payeesOf(kind: Kind, buyer: string, number: number): readonly Hex[] {
  const name = `${kind} ${buyer} ${number}`
  return [name, `${name} moved`, `${name} second`].map(toPayee)
}

function toPayee(name: string): Hex {
  return getAddress(`0x${createHash('sha256').update(`crash table ${name}`).digest('hex').slice(0, 40)}`)
}

interface Till {
  readonly taken: Set<string>
  hasFailed: boolean
  isDelivered: boolean
}

export interface TableSellers {
  readonly origin: string
  wasDelivered(kind: Kind, buyer: string, number: number): boolean
  close(): Promise<void>
}

/** @param isForgetful a payment that was taken is refused when it is presented again, as stock sellers do. */
export async function startTableSellers(chain: Chain, isForgetful: boolean): Promise<TableSellers> {
  const tills = new Map<string, Till>()
  const openTill = (name: string): Till => {
    const till = tills.get(name) ?? { taken: new Set(), hasFailed: false, isDelivered: false }
    tills.set(name, till)
    return till
  }
  const settle = async (payment: z.output<typeof authorization>, signature: Hex): Promise<boolean> => {
    const { from, to, value, validAfter, validBefore, nonce } = payment
    const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature]
    try {
      const address = chain.tokens.USDC
      const hash = await chain.signer.writeContract({
        address,
        abi,
        functionName: 'transferWithAuthorization',
        args,
      })
      return (await chain.signer.waitForTransactionReceipt({ hash })).status === 'success'
    } catch {
      return false
    }
  }

  const answer = async (request: Request): Promise<Response | 'hang up'> => {
    const url = new URL(request.url)
    const isMpp = url.pathname.startsWith('/mpp/')
    const [kindText = '', buyer = '', number = '', end] = url.pathname.replace(/^\/(mpp\/)?/, '').split('/')
    const kind = kinds.find((one) => one === kindText)
    if (kind === undefined) return new Response(null, { status: 404 })
    const isDishonest = dishonest.some((one) => one === kind)
    const name = `${kind} ${buyer} ${number}${end === undefined ? '' : ' second'}`
    const till = openTill(name)
    const ask = () => {
      const isMoved = kind === 'payee-changed' && till.hasFailed
      const terms = {
        payTo: toPayee(isMoved ? `${name} moved` : name),
        units: kind === 'price-raised' && till.hasFailed ? 2n * PRICE : PRICE,
      }
      return isMpp ? askByMpp(chain, request, terms) : askByX402(chain, request.url, terms)
    }
    const payment = readPayment(request, isMpp)
    if (payment === null) return ask()
    const goods = () => {
      till.isDelivered = true
      return Response.json({ report: 'sunny' })
    }
    if (till.taken.has(payment.nonce)) return isForgetful || isDishonest ? ask() : goods()
    const isFailing = isDishonest || (kind !== 'honest' && !till.hasFailed)
    if (isFailing && kind === 'late-settle') {
      till.hasFailed = true
      till.taken.add(payment.nonce)
      void pause(LATE_MS).then(() => settle(payment, payment.signature))
      return new Response(null, { status: 504 })
    }
    if (!(await settle(payment, payment.signature))) return ask()
    till.taken.add(payment.nonce)
    till.hasFailed = true
    if (!isFailing) return goods()
    if (kind === 'lost-answer') return 'hang up'
    if (kind === '504') return new Response(null, { status: 504 })
    if (kind === 'redirect')
      return new Response(null, { status: 307, headers: { location: `${url.pathname}/second` } })
    return ask()
  }

  const server = createServer(async (incoming, outgoing) => {
    const headers = Object.entries(incoming.headers).flatMap(([name, value]): [string, string][] =>
      typeof value === 'string' ? [[name, value]] : [],
    )
    const given = await answer(
      new Request(`http://${incoming.headers.host}${incoming.url}`, { headers }),
    ).catch((error: unknown) => new Response(String(error), { status: 500 }))
    if (given === 'hang up') return void outgoing.destroy()
    outgoing.writeHead(given.status, Object.fromEntries(given.headers))
    outgoing.end(Buffer.from(await given.arrayBuffer()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // A server on a port has an address.
  return {
    origin: `http://127.0.0.1:${port}`,
    wasDelivered: (kind, buyer, number) =>
      ['', ' second'].some((end) => tills.get(`${kind} ${buyer} ${number}${end}`)?.isDelivered === true),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function readPayment(request: Request, isMpp: boolean) {
  const decode = (text: string, encoding: 'base64' | 'base64url'): unknown =>
    JSON.parse(Buffer.from(text, encoding).toString())
  const header = request.headers.get('payment-signature') ?? request.headers.get('x-payment')
  const credential = request.headers.get('authorization')
  if (isMpp && credential?.startsWith('Payment ') === true)
    return mppPaid.parse(decode(credential.slice('Payment '.length), 'base64url')).payload
  if (header === null) return null
  const { payload } = paid.parse(decode(header, 'base64'))
  return { ...payload.authorization, signature: payload.signature }
}

interface Terms {
  readonly payTo: Hex
  readonly units: bigint
}

/** Version 2 in the header, version 1 in the body, as sellers of both do. */
function askByX402({ tokens }: Chain, url: string, { payTo, units }: Terms): Response {
  const shared = {
    scheme: 'exact',
    asset: tokens.USDC,
    payTo,
    maxTimeoutSeconds: 60,
    extra: { name: 'USDC', version: '2' },
  }
  const resource = { url, description: 'A report', mimeType: 'application/json' }
  const amount = units.toString()
  const second = {
    x402Version: 2,
    error: 'payment required',
    resource,
    accepts: [{ ...shared, network: NETWORK, amount }],
  }
  const first = {
    x402Version: 1,
    error: 'payment required',
    accepts: [
      {
        ...shared,
        network: 'base-sepolia',
        maxAmountRequired: amount,
        resource: url,
        description: resource.description,
        mimeType: resource.mimeType,
      },
    ],
  }
  const required = Buffer.from(JSON.stringify(second)).toString('base64')
  return Response.json(first, { status: 402, headers: { 'payment-required': required } })
}

async function askByMpp({ tokens }: Chain, request: Request, { payTo, units }: Terms): Promise<Response> {
  const mpp = Mppx.create({
    realm: 'seller.test',
    secretKey: 'x'.repeat(40),
    methods: [
      evm.charge({
        currency: tokens.USDC,
        chainId: 84532,
        decimals: 6,
        authorization: { name: 'USDC', version: '2' },
        recipient: payTo,
        settle: () => Promise.reject(new Error('this seller settles by itself')),
      }),
    ],
  })
  const asked = await mpp.charge({ amount: `${Number(units) / 1e6}` })(new Request(request.url))
  if (asked.status !== 402) throw new Error('it does not ask')
  // Of MPP alone: a buyer of x402 has its own path.
  const headers = new Headers([...asked.challenge.headers].filter(([name]) => !/^(x-)?payment-/.test(name)))
  return new Response(await asked.challenge.text(), { status: 402, headers })
}
