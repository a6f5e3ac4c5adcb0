import { beforeAll, expect, it } from 'vitest'
import type { Principal } from '../../../../src/core/base/principal.ts'
import type { Database } from '../../../../src/storage/database.ts'
import delegate from '../../../../tools/agents/delegate.ts'
import tree from '../../../../tools/agents/keys/tree.ts'
import { onBothEngines } from '../../../engines.ts'
import { servicesOn } from '../../../kernel/scene.ts'
import { walletScene } from '../../wallets/scene.ts'

onBothEngines('the tree of a key', (database) => {
  let scene: ReturnType<typeof walletScene>
  let owner: Principal
  let rootId: string
  beforeAll(async () => {
    scene = walletScene(await servicesOn(database()))
    owner = await scene.newOwner()
    const { principal } = await scene.addAgent(owner)
    if (principal.kind !== 'key') throw new Error('the agent is no key')
    rootId = principal.key.id
  })
  const addChild = async (parentId: string): Promise<string> => {
    const given = { parentId, name: 'Child', scopes: [], bearer: true, expiresAt: '2099-01-01T00:00:00Z' }
    return String((await scene.call(delegate, owner, given)).agentId)
  }
  /** Reads the tree. @returns how many statements that took, beside it. */
  const readTree = async () => {
    let statements = 0
    const counting: Database = {
      ...database(),
      call: (...statement) => {
        statements += 1
        return database().call(...statement)
      },
    }
    const root = await scene.call(tree, owner, { id: rootId }, { database: counting })
    return { root, statements }
  }

  it('has every key below its own parent, and takes no more statements for more keys', async () => {
    const first = await addChild(rootId)
    const before = await readTree()
    const grandchild = await addChild(first)
    const second = await addChild(rootId)
    const after = await readTree()
    // Ids of one moment have no order.
    expect(after.root.children).toHaveLength(2)
    expect(after.root.children).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          agentId: first,
          children: [expect.objectContaining({ agentId: grandchild, children: [] })],
        }),
        expect.objectContaining({ agentId: second, children: [] }),
      ]),
    )
    expect([before.statements, after.statements]).toEqual([2, 2])
  })
})
