/**
 * Thrown by a spend whose terms the other side did not keep, once nothing can come of its decision for its call any more: the call is
 * planned and decided anew.
 * @property purseId purse by which alone it is then paid, so that what may still be taken of the first is a part of it.
 */
export class PlanAgain extends Error {
  override readonly name = 'PlanAgain'
  readonly purseId: string

  constructor(purseId: string) {
    super('the terms of a spend have changed')
    this.purseId = purseId
  }
}
