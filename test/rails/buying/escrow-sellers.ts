/** Sellers by the x402 scheme `auth-capture`, over the gateway's chain: honest ones, and what honest ones never do. */
import { Hono } from 'hono'
import { parseAbi, zeroAddress } from 'viem'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Address, Chain, Hex } from '../../../src/providers/chain/port.ts'
import {
  type EscrowPayment,
  escrowAddress,
  escrowCollectorAddress,
  escrowPaymentStruct,
  hashEscrowPayment,
} from '../../../src/providers/payment-escrow.ts'
import { listen } from '../selling/x402/scene.ts'

export const ESCROW_SELLER: Address = '0x8626f6940E2eb28930eFb4CeF49B2d1F2C9C1199'
/** 0.005 USDC. */
export const ESCROW_PRICE = 5_000n

const abi = parseAbi([
  escrowPaymentStruct,
  'function authorize(PaymentInfo info, uint256 amount, address collector, bytes data)',
  'function charge(PaymentInfo info, uint256 amount, address collector, bytes data, uint16 feeBps, address feeReceiver)',
  'function capture(PaymentInfo info, uint256 amount, uint16 feeBps, address feeReceiver)',
  'function void(PaymentInfo info)',
  'function reclaim(PaymentInfo info)',
  'function refund(PaymentInfo info, uint256 amount, address collector, bytes data)',
])
const erc20 = parseAbi(['function approve(address spender, uint256 value) returns (bool)'])

export interface EscrowSellers {
  readonly origin: string
  readonly chain: Chain
  /** How often a run was presented, and asked for its money. */
  count(run: string): { readonly paid: number; readonly asked: number }
  /** Calls the escrow for a run. @returns whether the chain took it. */
  act(
    run: string,
    what: 'capture' | 'void' | 'reclaim' | 'refund' | 'authorize',
    units?: bigint,
  ): Promise<boolean>
  /** Captures with another receiver than was signed. @returns whether the chain took it. */
  captureElsewhere(run: string): Promise<boolean>
  state(run: string): ReturnType<Chain['escrowState']>
  /** Runs before a request for money of a run is answered. */
  onAsked(run: string, work: () => Promise<unknown>): void
  close(): Promise<void>
}

/**
 * Serves `/own/{kind}/{run}?capture={seconds}`: `deliver` moves the price into escrow and delivers; `silent` moves it and fails; `lower` moves
 * 3,000 units and delivers; `charge` takes the price at once and delivers; `never` does not move it and fails. Requests for money back are
 * accepted, and nothing is done, but for runs that start with `refuse-`; `mute-` runs declare no refunds.
 */
export async function startEscrowSellers(rpcUrl: string): Promise<EscrowSellers> {
  const clock = () => new Date()
  const chain = await connectRpcChain({ name: 'base-sepolia', url: rpcUrl, log: silentLog, clock })
  const payments = new Map<string, { payment: EscrowPayment; signature: Hex }>()
  const paid = new Map<string, number>()
  const asked = new Map<string, number>()
  const hooks = new Map<string, () => Promise<unknown>>()
  const app = new Hono()
  const write = async (functionName: string, args: readonly unknown[]) => {
    try {
      const hash = await chain.signer.writeContract({ address: escrowAddress, abi, functionName, args })
      return (await chain.signer.waitForTransactionReceipt({ hash })).status === 'success'
    } catch {
      return false
    }
  }
  const find = (run: string) => {
    const found = payments.get(run)
    if (found === undefined) throw new Error(`${run} was not paid`)
    return found
  }
  const act: EscrowSellers['act'] = async (run, what, units = ESCROW_PRICE) => {
    const { payment, signature } = find(run)
    switch (what) {
      case 'authorize':
        return write('authorize', [payment, units, escrowCollectorAddress, signature])
      case 'capture':
        return write('capture', [payment, units, 0, zeroAddress])
      case 'refund': {
        await chain.mint([{ token: 'USDC', to: chain.signer.address, units }])
        const call = { address: chain.tokens.USDC, abi: erc20, functionName: 'approve' }
        const hash = await chain.signer.writeContract({ ...call, args: [escrowAddress, units] })
        await chain.signer.waitForTransactionReceipt({ hash })
        return write('refund', [payment, units, zeroAddress, '0x'])
      }
      default:
        return write(what, [payment])
    }
  }
  app.post('/refund/:run', async (c) => {
    const { run } = c.req.param()
    asked.set(run, (asked.get(run) ?? 0) + 1)
    await hooks.get(run)?.()
    return run.startsWith('refuse-') ? c.text('no', 403) : c.text('voided, promised', 202)
  })
  app.get('/own/:kind/:run', async (c) => {
    const { kind, run } = c.req.param()
    const header = c.req.header('payment-signature')
    if (header === undefined) {
      const now = Math.floor(Date.now() / 1000)
      const captureDeadline = now + Number(c.req.query('capture') ?? '3600')
      const offer = {
        scheme: 'auth-capture',
        network: 'eip155:84532',
        asset: chain.tokens.USDC,
        payTo: ESCROW_SELLER,
        amount: ESCROW_PRICE.toString(),
        maxTimeoutSeconds: 20,
        extra: {
          name: 'USDC',
          version: '2',
          captureAuthorizer: chain.signer.address,
          captureDeadline,
          refundDeadline: captureDeadline + 86_400,
          feeRecipient: zeroAddress,
          minFeeBps: 0,
          maxFeeBps: 0,
          ...(run.startsWith('bound-') ? { receiverAuthorizer: ESCROW_SELLER } : {}),
          ...(run.startsWith('mute-') ? {} : { refundUrl: `/refund/${run}` }),
        },
      }
      const text = JSON.stringify({ x402Version: 2, resource: { url: c.req.url }, accepts: [offer] })
      c.header('payment-required', Buffer.from(text).toString('base64'))
      return c.body(null, 402)
    }
    paid.set(run, (paid.get(run) ?? 0) + 1)
    const { accepted, payload } = JSON.parse(Buffer.from(header, 'base64').toString())
    const { authorization, signature, salt } = payload
    const { extra } = accepted
    payments.set(run, {
      signature,
      payment: {
        operator: extra.captureAuthorizer,
        payer: authorization.from,
        receiver: accepted.payTo,
        token: accepted.asset,
        maxAmount: BigInt(authorization.value),
        preApprovalExpiry: Number(authorization.validBefore),
        authorizationExpiry: extra.captureDeadline,
        refundExpiry: extra.refundDeadline,
        minFeeBps: extra.minFeeBps,
        maxFeeBps: extra.maxFeeBps,
        feeReceiver: extra.feeRecipient,
        salt: BigInt(salt),
      },
    })
    const { payment } = find(run)
    if (kind === 'charge')
      await write('charge', [payment, ESCROW_PRICE, escrowCollectorAddress, signature, 0, zeroAddress])
    else if (kind !== 'never') await act(run, 'authorize', kind === 'lower' ? 3_000n : ESCROW_PRICE)
    return kind === 'silent' || kind === 'never' ? c.text('', 504) : c.json({ run })
  })
  const { server: http, port } = await listen(app)
  return {
    origin: `http://127.0.0.1:${port}`,
    chain,
    count: (run) => ({ paid: paid.get(run) ?? 0, asked: asked.get(run) ?? 0 }),
    act,
    captureElsewhere: (run) =>
      write('capture', [{ ...find(run).payment, receiver: chain.signer.address }, 1n, 0, zeroAddress]),
    state: (run) => chain.escrowState(hashEscrowPayment(find(run).payment, chain.id), 'latest'),
    onAsked: (run, work) => void hooks.set(run, work),
    close: async () => {
      if ('closeAllConnections' in http) http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
      await chain.close()
    },
  }
}
